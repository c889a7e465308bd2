"""The arguments and the version that one start of a server says."""

from __future__ import annotations

from msgspec import Struct

from sgmon.analyse.log.lines import LOOK
from sgmon.model.server import ServerArgs
from sgmon.servers.family import LogRules
from sgmon.text import safe

#: Lines before its arguments in which a start says its version.
SAID_BEFORE = 3


class RunArguments(Struct):
    """Accumulates. args: None until they are read."""

    log: LogRules
    args: ServerArgs | None = None
    version: str = ""
    newest: tuple[int, str] = (0, "")  # the line that told a version last, and that version
    cut: str = ""  # the arguments' line as far as it goes, where another program has wrapped it

    def take(self, text: str) -> bool:
        """Read the line of the arguments; whether another start's were read before, which has another port."""
        before, found = self.args, self.log.args(text)
        self.args = found or before
        self.cut = "" if text.rstrip().endswith((")", "}")) else text
        return before is not None and found is not None and before.port != found.port

    def goes_on(self, text: str) -> bool:
        """Whether this line goes on with the arguments of the one before, which are read with it then."""
        if self.log.record.match(text) or len(self.cut) > LOOK:
            self.cut = ""
            return False
        whole = self.cut + text
        self.args = self.log.args(whole) or self.args
        self.cut = "" if text.rstrip().endswith((")", "}")) else whole
        return True

    def take_version(self, body: str, number: int) -> None:
        """Read the version in a line, if there is one; the first one counts."""
        version = self.log.version.search(body[:4000])
        if version:
            self.newest = (number, safe(version[1]))
            self.version = self.version or self.newest[1]

    def next_start(self, number: int) -> RunArguments:
        """Those of another start: what it has said right before line ``number``, its first."""
        told_at, version = self.newest
        return RunArguments(self.log, version=version if number - told_at <= SAID_BEFORE else "")
