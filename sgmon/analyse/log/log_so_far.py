"""What the fold of a log keeps of the file that it reads."""

from __future__ import annotations

from msgspec import Struct, field

from sgmon.analyse.log.envelope import Opened
from sgmon.analyse.log.gaps import Gaps
from sgmon.analyse.log.run import Run
from sgmon.servers.family import LogRules


class LearnedError(Exception):
    """Something was learned that changes how the beginning is read."""


class LogSoFar(Struct):
    """What is known of the file that is read."""

    run: Run
    path: str = ""
    kind: str = ""
    change: str = ""
    size: int | None = None
    note: str = ""
    lines: int = 0  # whole lines
    tail: str = ""  # after the last \n or \r
    open_line: bool = False  # a \r ended a frame of a line that is not ended
    tail_t: float = 0.0
    gaps: Gaps = field(default_factory=Gaps)
    previous: str = ""
    last_text: str = ""
    last_number: int = 0
    last_byte_t: float | None = None
    clock_zero: float | None = None  # as in LogState
    last_activity_t: float | None = None
    undated_t: float | None = None
    # of a wrapped log
    parts: dict[str, Run] = field(default_factory=dict)  # writer -> what it alone wrote
    counts: dict[str, int] = field(default_factory=dict)  # writer -> its lines
    before: dict[str, str] = field(default_factory=dict)  # writer -> its last line
    halves: dict[str, Opened] = field(default_factory=dict)  # writer -> a line that goes on in its next entry
    shift_s: float = 0.0  # the server's clock less the envelope's, in quarters of an hour

    @property
    def rules(self) -> LogRules:
        """Of the family that writes it, as far as is known."""
        return self.run.log
