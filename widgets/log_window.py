"""Rows around a place in a log of any size: forward, backward, never more than is needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len

from widgets.line import head_of
from widgets.log_rows import Folder, Folding, Row
from widgets.log_text import NONE, UNKNOWN, BlockSurvey, LogText

Key = tuple[int, int, int]  # offset, part, wrapped row
#: blocks looked at for one key press before the rest is left to the survey; without a filter, before giving up
PATIENCE = 3
EMPTY = 600
SUFFIX_CELLS = 14  # room for who printed a line, after its wrapped text
KEPT_BLOCKS = 32


class Placed(Struct, frozen=True):
    """A screen row: a row, or one wrapped piece of it."""

    row: Row
    piece: int
    text: str

    @property
    def key(self) -> Key:
        return (self.row.offset, self.row.part, self.piece)


class Window:
    """Screen rows of a log, block by block, cached. Knows no terminal."""

    def __init__(self, text: LogText) -> None:
        self.text = text
        self.folding = Folding()
        self.wrap_width = 0  # 0: lines are cut, not wrapped
        self.expanded: frozenset[int] = frozenset()  # offsets of lines that are wrapped all the same
        self.expanded_width = 80
        self.survey: BlockSurvey | None = None
        self.message: Callable[[Row], str] = lambda row: row.message
        self.waiting = False  # the last walk stopped where the survey has not been
        self._kept: OrderedDict[int, tuple[object, list[Placed]]] = OrderedDict()

    def forget(self) -> None:
        """Other settings, another file."""
        self._kept.clear()

    def rows(self, block: int) -> list[Placed]:
        """The screen rows whose line begins in this block."""
        before, own, after = (self.text.block(b) for b in (block - 1, block, block + 1))
        if not own:
            return []
        state = (len(before), len(own), own[-1], len(after), after[-1:])
        kept = self._kept.get(block)
        if kept is not None and kept[0] == state:
            self._kept.move_to_end(block)
            return kept[1]
        start, end = block * self.text.block_bytes, (block + 1) * self.text.block_bytes
        folding = replace(self.folding, opened=self.expanded)
        rows = Folder(folding).fold([*before, *own, *after])
        placed = [p for row in rows if start <= row.offset < end for p in self._place(row)]
        self._kept[block] = (state, placed)
        self._kept.move_to_end(block)
        while len(self._kept) > KEPT_BLOCKS:
            self._kept.popitem(last=False)
        return placed

    def _place(self, row: Row) -> list[Placed]:
        message = self.message(row)
        width = self.expanded_width if row.offset in self.expanded else self.wrap_width
        width -= SUFFIX_CELLS if width and row.count > 1 else 0
        if not width or row.kind != "line" or cell_len(message) <= width:
            return [Placed(row, 0, message)]
        return [Placed(row, i, text) for i, text in enumerate(chop(message, width))]

    def after(self, key: Key, count: int) -> list[Placed]:
        """Up to ``count`` rows from ``key`` on (itself included, if it is there)."""
        placed: list[Placed] = []
        for block in self._walk(max(0, key[0]) // self.text.block_bytes, 1):
            rows = self.rows(block)
            placed += rows if placed else [p for p in rows if p.key >= key]
            if len(placed) >= count:
                break
        return placed[:count]

    def before(self, key: Key | None, count: int) -> list[Placed]:
        """Up to ``count`` rows before ``key`` (None: the end), in their order."""
        placed: list[Placed] = []
        last = self.text.blocks - 1
        first = last if key is None else min(last, key[0] // self.text.block_bytes)
        for block in self._walk(first, -1):
            rows = self.rows(block)
            if key is not None and not placed:
                rows = [p for p in rows if p.key < key]
            placed = rows + placed
            if len(placed) >= count:
                break
        return placed[-count:] if count else []

    def _walk(self, block: int, step: int) -> _Walk:
        return _Walk(self, block, step)


class _Walk:
    """Blocks in one direction, those without a passing line left out."""

    def __init__(self, window: Window, block: int, step: int) -> None:
        self._window = window
        self._block = block
        self._step = step
        self._patience = EMPTY if window.survey is None else PATIENCE

    def __iter__(self) -> _Walk:
        self._window.waiting = False
        return self

    def __next__(self) -> int:
        window = self._window
        survey = window.survey
        while 0 <= self._block < window.text.blocks:
            block = self._block
            state = survey.state(block) if survey is not None else UNKNOWN
            if state == NONE:
                self._block += self._step
                continue
            if state == UNKNOWN:
                self._patience -= 1
                if self._patience < 0:
                    window.waiting = survey is not None
                    raise StopIteration
            self._block += self._step
            return block
        raise StopIteration


def chop(text: str, width: int) -> list[str]:
    """``text`` in pieces of at most ``width`` cells, broken after a space where one is near the end."""
    width = max(2, width)
    out: list[str] = []
    while text:
        head = text[:width] if text.isascii() else head_of(text, width)
        if len(head) < len(text):
            space = head.rfind(" ", len(head) * 2 // 3)
            if space > 0:
                head = head[: space + 1]
        out.append(head)
        text = text[len(head) :]
    return out or [""]
