"""One file of the log panel: its size, its lines as far as they are counted, the blocks that were described."""

from __future__ import annotations

import threading
from collections import OrderedDict

from msgspec import Struct

from sgmon.analyse.log.blocks import NewlineCounts
from sgmon.analyse.log.textfile import RegularFile, Spool
from sgmon.model import LogLine

Entry = tuple[int, LogLine]
#: So many new bytes are counted when they come: with the lines of a moment later the panel would be painted twice.
SOON = 4 << 20


class Kept(Struct):
    """A described block. ``size``: of the log when it was read; ``ended``: nothing can be added to it."""

    size: int
    ended: bool
    before: int | None
    entries: list[Entry]


class Generation:
    """One file, from its first byte to its last. Truncation or another file begins a new one."""

    def __init__(self, file: RegularFile | Spool) -> None:
        self.file = file
        self.counts = NewlineCounts()
        self.size = file.size
        self.blocks: OrderedDict[int, Kept] = OrderedDict()
        self.lock = threading.Lock()
        self.counting = threading.Lock()

    def count_step(self) -> bool:
        """Count the lines of one more piece; False when there is none."""
        with self.counting:
            return self.counts.advance(self.file, self.size)

    def counts_at_once(self) -> bool:
        """Count what is new, if it is little and a read cannot hang; False: it is left to the thread."""
        new = self.size - self.counts.counted
        if not isinstance(self.file, RegularFile) or self.file.may_hang or new > SOON or self.counting.locked():
            return False
        while self.count_step():
            pass
        return True
