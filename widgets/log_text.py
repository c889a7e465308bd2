"""What the log panel needs of the text behind it: ``sgmon.analyse.log.index.LogIndex``, or a double in tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sgmon.model import LogLine

Entry = tuple[int, LogLine]  # byte offset of the line, the line
Wanted = Callable[[LogLine], bool]
Hint = Callable[[str], bool]
UNKNOWN, NONE, SOME = 0, 1, 2


class LineSearch(Protocol):
    """A look for one line. ``done`` is called in another thread with its offset, or None."""

    def start(self, offset: int, forward: bool, block: int, done: Callable[[int | None], None]) -> None: ...

    def cancel(self) -> None: ...


class LineCount(Protocol):
    """A look for all lines. ``done`` is called in another thread with their offsets, ascending."""

    def start(self, done: Callable[[Sequence[int]], None]) -> None: ...

    def cancel(self) -> None: ...


class BlockSurvey(Protocol):
    """Which blocks hold lines that pass a filter, as far as it is known. ``progress`` comes from another thread."""

    @property
    def done_share(self) -> float: ...

    def start(self, progress: Callable[[], None]) -> None: ...

    def cancel(self) -> None: ...

    def grow(self) -> None: ...

    def state(self, block: int) -> int: ...


class LogText(Protocol):
    """Lines by byte offset. The file is cut in blocks of ``block_bytes``; a line belongs to the one it begins in."""

    block_bytes: int
    version: int  # differs after every change
    generation: int  # differs when offsets of before mean nothing
    path: str
    kind: str
    change: str
    note: str
    writer_offset: int | None

    @property
    def size(self) -> int: ...

    @property
    def blocks(self) -> int: ...

    @property
    def indexed(self) -> int: ...

    @property
    def total(self) -> int: ...

    def block(self, block: int) -> list[Entry]: ...

    def offset_of(self, number: int, node: str = "") -> int | None: ...

    def hint(self, kind: str) -> Hint | None: ...

    def search(self, wanted: Wanted, hint: Hint | None = None) -> LineSearch: ...

    def count(self, wanted: Wanted, hint: Hint | None = None) -> LineCount: ...

    def survey(self, wanted: Wanted, hint: Hint | None = None) -> BlockSurvey: ...
