"""Sequences that write cells of a screen, from where the cursor is and how it writes. Pure."""

from __future__ import annotations

from typing import NamedTuple

from tui_app.output.abilities import Abilities
from tui_app.output.cells import Cell, Row
from tui_app.output.clearing import BLANK
from tui_app.output.moves import back, forward, repeated
from tui_app.output.pens import PLAIN, Pen, change

GAP = 4  # equal cells between two changed ones that are not dearer to send than a movement
ERASE = 5  # blanks to the end of a row from which erasing is shorter
SKIP = 9  # blanks within a row from which erasing and moving is shorter
_LINES = 3  # rows down to which line feeds are not longer than a movement


class Stretch(NamedTuple):
    """Cells of a row, from ``begin`` to ``end``, that go out in one look. is_erased: blanks, which are erased. What
    lies between and has another look is written as a blank: its own turn comes later."""

    y: int
    begin: int
    end: int
    pen: Pen
    is_erased: bool = False

    def holds(self, cell: Cell) -> bool:
        """Whether this cell is right when it is written in this look."""
        own = cell[1]
        return own is self.pen or own == self.pen or (cell[0] == " " and is_alike(own, self.pen))


def byte_count(text: str) -> int:
    return len(text.encode())


def _runs(before: Row, after: Row) -> list[tuple[int, int]]:
    """(begin, end) of the stretches to send; equal cells between two are sent too where that is not dearer."""
    runs: list[tuple[int, int]] = []
    for x in range(len(after)):
        if before[x] == after[x]:
            continue
        begin = x
        while begin and after[begin][0] == "":
            begin -= 1
        if runs and _goes_on(after, runs[-1][1], begin):
            runs[-1] = (runs[-1][0], x + 1)
        else:
            runs.append((begin, x + 1))
    return [(begin, end + (end < len(after) and after[end][0] == "")) for begin, end in runs]


def _goes_on(row: Row, end: int, begin: int) -> bool:
    """Whether a stretch that ends here and one that begins there are one: the cells between are sent, too."""
    return begin <= end or (begin - end <= GAP and _costs_no_pen(row, end, begin))


def _costs_no_pen(row: Row, begin: int, end: int) -> bool:
    """Whether these cells can be written with the pen of the cell before them, or, blanks, with that of the next."""
    if _written_with(row[begin - 1][1], row, begin, end):
        return True
    behind = row[end][1]
    if end - begin >= GAP:
        return False
    return all(row[x][0] == " " and is_alike(row[x][1], behind) for x in range(begin, end))


def _written_with(pen: Pen, row: Row, begin: int, end: int) -> bool:
    for x in range(begin, end):
        char, own = row[x]
        if own is not pen and own != pen and (char != " " or not is_alike(own, pen)):
            return False
    return True


def _pen_ahead(row: Row, x: int, end: int) -> Pen:
    """The pen of the next character, if the blank here looks the same in it; else the blank's own."""
    pen = row[x][1]
    for char, ahead in row[x + 1 : end]:
        if char != " ":
            return ahead if is_alike(ahead, pen) else pen
    return pen


def is_alike(one: Pen, other: Pen) -> bool:
    """Whether a blank looks the same in both."""
    return (
        one is other
        or one == other
        or (one.back == other.back and not one.shows_on_blanks and not other.shows_on_blanks)
    )


class Sender:
    """Collects sequences, and knows where the cursor is and how it writes."""

    def __init__(self, can: Abilities) -> None:
        self.can = can
        self.parts: list[str] = []
        self.pen = PLAIN
        self.bytes_of_looks = 0  # of changes of look
        self.y: int | None = None  # None: not known
        self.x: int | None = None  # None: after the last column, where terminals differ

    @property
    def _state(self) -> tuple[Pen, int | None, int | None]:
        return self.pen, self.y, self.x

    @_state.setter
    def _state(self, state: tuple[Pen, int | None, int | None]) -> None:
        self.pen, self.y, self.x = state

    def erase_from(self, y: int, back: str = "") -> None:
        """Erase this row and all below it, in a background that the terminal can erase in."""
        self._use(Pen(back=back))
        self._move(0, y, [])
        self.parts.append("\x1b[J")

    def clear(self, y: int, blank: Cell, width: int) -> None:
        """Erase a row, or write blanks over it where erasing leaves another background."""
        pen = blank[1]
        if pen.back and not self.can.erases_in_colour:
            self.stretch(Stretch(y, 0, width, pen), [blank] * width)
            return
        self._use(pen)
        self._move(0, y, [])
        self.parts.append("\x1b[K")

    def stretch(self, one: Stretch, row: Row) -> None:
        """Write or erase a stretch of a row in its look."""
        self._use(one.pen)
        self._move(one.begin, one.y, row)
        if one.is_erased:
            self._erase(row, one.begin, one.end - one.begin)
            return
        cells = [(cell[0] if one.holds(cell) else " ", one.pen) for cell in row[one.begin : one.end]]
        at = 0
        while at < len(cells):
            at = self._write(cells, at, len(cells))
        self.x = one.end if one.end < len(row) else None

    def row(self, y: int, before: Row, after: Row) -> None:
        """The changes of a row, or the row anew after erasing its end, whichever is shorter."""
        runs = _runs(before, after)
        if not runs:
            return
        start, kept = self._state, len(self.parts)
        for begin, end in runs:
            self._run(y, begin, end, after)
        if not any(cell[0] != " " for cell in before[runs[0][0] : runs[-1][1]]):
            return  # erasing would change nothing
        cells, ended = self.parts[kept:], self._state
        if len(cells) < SKIP:
            return
        del self.parts[kept:]
        self._state = start
        self._erase_row(y, runs[0][0], after)
        if byte_count("".join(cells)) <= byte_count("".join(self.parts[kept:])):
            self.parts[kept:] = cells
            self._state = ended

    def end(self) -> str:
        if self.parts:
            self._use(PLAIN)
        return "".join(self.parts)

    def _erase_row(self, y: int, x: int, after: Row) -> None:
        self._move(x, y, after)
        self._use(PLAIN)
        self.parts.append("\x1b[K")
        for begin, end in _runs([*after[:x], *[BLANK] * (len(after) - x)], after):
            self._run(y, begin, end, after)

    def _run(self, y: int, begin: int, end: int, row: Row) -> None:
        """Write the cells from ``begin`` to ``end`` of a row."""
        x = begin
        while x < end:
            char, pen = row[x]
            self._move(x, y, row)  # an erasure leaves the cursor where it began
            if char == " " and (blanks := self._blanks(row, x, end)):
                x = self._erase(row, x, blanks)
                continue
            if pen is not self.pen and (char != " " or not is_alike(pen, self.pen)):
                self._use(pen if char != " " else _pen_ahead(row, x, end))  # else a blank looks the same in both
            x = self._write(row, x, end)
            self.x = x if x < len(row) else None

    def _write(self, row: Row, x: int, end: int) -> int:
        """Write a character, and its equals behind it; returns where the next one stands."""
        cell = row[x]
        stop = x + 1
        # a wide character takes two cells, of which the second has no text: it is never its own neighbour
        while stop < end and row[stop] == cell:
            stop += 1
        self.parts.append(cell[0] if stop == x + 1 else repeated(cell[0], stop - x, self.can))
        return stop

    def _blanks(self, row: Row, x: int, end: int) -> int:
        """How many blanks of one look can be erased from here; 0 when writing them is as good."""
        pen = row[x][1]
        if pen.shows_on_blanks or (pen.back and not self.can.erases_in_colour):
            return 0
        stop = x
        while stop < end and row[stop][0] == " " and is_alike(row[stop][1], pen):
            stop += 1
        return stop - x if stop - x >= (ERASE if stop == len(row) else SKIP) else 0

    def _erase(self, row: Row, x: int, blanks: int) -> int:
        """Erase blanks; returns where the next cell stands."""
        back = row[x][1].back
        if self.pen.back != back or self.pen.shows_on_blanks:
            self._use(Pen(back=back))
        if x + blanks == len(row):
            self.parts.append("\x1b[K")
        else:
            self.parts.append(f"\x1b[{blanks}X")  # the cursor stays
        return x + blanks

    def _use(self, pen: Pen) -> None:
        if pen != self.pen:
            self.parts.append(change(self.pen, pen))
            self.bytes_of_looks += len(self.parts[-1])
        self.pen = pen

    def _move(self, x: int, y: int, row: Row) -> None:
        if self.y == y and self.x == x:
            return
        ways = [f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H" if y else "\x1b[H"]
        if self.y is not None and 0 <= y - self.y <= _LINES:
            feeds = "\n" * (y - self.y)
            ways.append("\r" + feeds + self._over(row, 0, x))
            if self.x is not None:
                ways.append(feeds + (back(self.x - x) if x < self.x else self._over(row, self.x, x)))
            ways.append(f"{feeds}\x1b[{x + 1}G")
        self.parts.append(min(ways, key=len))
        self.y, self.x = y, x

    def _over(self, row: Row, begin: int, end: int) -> str:
        """The way over cells that stand already: blanks are as short as a movement."""
        way = forward(end - begin)
        if end - begin <= len(way) and all(char == " " and is_alike(pen, self.pen) for char, pen in row[begin:end]):
            return " " * (end - begin)
        return way
