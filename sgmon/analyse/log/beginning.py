"""What the beginning of a log teaches: which family wrote it, and what stands around its lines.

Each line is looked at once, however often the log grows.
"""

from __future__ import annotations

import threading

from sgmon.analyse.log.blocks import decode
from sgmon.analyse.log.envelope import Envelope, uncoloured
from sgmon.analyse.log.language import choose
from sgmon.analyse.log.textfile import TextFile
from sgmon.servers.family import LogRules

#: Bytes from the beginning that are looked at.
TAUGHT = 256 * 1024


class Beginning:
    """Learns from the whole lines of one file's first bytes, as they come. Any thread may ask."""

    def __init__(self, rules: LogRules) -> None:
        self.rules = rules  # of the family that writes, as far as is known
        self.envelope = Envelope(rules)
        self._spoken = False  # that family's words were found: another's are quoted by it
        self._whole = 0  # bytes of whole lines that were learned from
        self._size = 0  # of the file when it was looked at
        self._lock = threading.Lock()

    def learn(self, file: TextFile, size: int) -> bool:
        """Look at the lines that have come; whether lines are to be described anew. size: of the file now.

        Where the lines are another family's, ``rules`` are that family's afterwards and nothing was learned by them.
        """
        if self._size >= min(size, TAUGHT):
            return False
        with self._lock:
            if self._size >= min(size, TAUGHT):
                return False
            self._size = min(size, TAUGHT)
            data = file.read(self._whole, self._size - self._whole)
            if self._another_writes(data):
                return True
            whole = data[: data.rfind(b"\n") + 1]
            self._whole += len(whole)
            return self._lines(uncoloured(decode(whole)).split("\n"))

    def _another_writes(self, data: bytes) -> bool:
        """Whether these bytes show that another family writes than was thought, which ``rules`` name then."""
        if self._spoken:
            return False
        rules = choose(uncoloured(decode(data)), self.rules)
        self._spoken = rules is self.rules
        if rules is None or self._spoken:
            return False
        self.rules = rules
        return True

    def _lines(self, lines: list[str]) -> bool:
        """Learn from these lines, each as often as it teaches something; whether one did."""
        at = self.envelope.learn(lines)
        taught = at is not None
        while at is not None:
            lines = lines[at:]
            at = self.envelope.learn(lines)
        return taught
