"""The cells of a screen, and what has to be sent so that one screen becomes another. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from tui_app.output.pens import PLAIN, Pen, change, pen_of

if TYPE_CHECKING:
    from rich.color import ColorSystem
    from rich.segment import Segment

#: (character, look); "" is the right half of the wide character before it
Cell = tuple[str, Pen]
Row = list[Cell]

_GAP = 4  # equal cells between two changed ones that are cheaper to send than a movement
_ERASE = 5  # blanks to the end of a row from which erasing is shorter
_SKIP = 9  # blanks within a row from which erasing and moving is shorter


def blank(width: int, height: int, pen: Pen = PLAIN) -> list[Row]:
    """An empty screen."""
    return [[(" ", pen)] * width for _ in range(height)]


def put(row: Row, x: int, segments: Iterable[Segment], system: ColorSystem | None) -> None:
    """Write segments into a row, from cell ``x`` on; what lies beyond its end is left out."""
    width = len(row)
    for text, style, control in segments:
        if control:
            continue
        pen = pen_of(style, system)
        for char in text:
            cells = 1 if char.isascii() else cell_len(char)
            if cells == 0:
                if 0 < x <= width:  # it belongs to the character before
                    row[x - 1] = (row[x - 1][0] + char, row[x - 1][1])
                continue
            if x + cells > width:
                return
            row[x] = (char, pen) if char != " " or pen.shows_on_blanks else (char, Pen(back=pen.back))
            if cells == 2:
                row[x + 1] = ("", pen)
            x += cells


def difference(old: Sequence[Row], new: Sequence[Row], *, erases_in_colour: bool) -> str:
    """The shortest bytes that we know from ``old`` to ``new`` (of the same size), beginning and ending in plain.

    erases_in_colour: the terminal erases with the background in use (terminfo's ``bce``).
    """
    sender = _Sender(erases_in_colour)
    for y, (before, after) in enumerate(zip(old, new, strict=True)):
        if before != after:
            for begin, end in _runs(before, after):
                sender.run(y, begin, end, after)
    return sender.end()


def _runs(before: Row, after: Row) -> list[tuple[int, int]]:
    """(begin, end) of the stretches to send; short equal stretches between two changes are sent too."""
    runs: list[tuple[int, int]] = []
    for x in range(len(after)):
        if before[x] == after[x]:
            continue
        begin = x
        while begin and after[begin][0] == "":
            begin -= 1
        if runs and begin - runs[-1][1] <= _GAP:
            runs[-1] = (runs[-1][0], x + 1)
        else:
            runs.append((begin, x + 1))
    return [(begin, end + (end < len(after) and after[end][0] == "")) for begin, end in runs]


class _Sender:
    """Collects sequences, and knows where the cursor is and how it writes."""

    def __init__(self, erases_in_colour: bool) -> None:
        self.erases_in_colour = erases_in_colour
        self.parts: list[str] = []
        self.pen = PLAIN
        self.at: tuple[int, int] | None = None  # (x, y); None: not known

    def run(self, y: int, begin: int, end: int, row: Row) -> None:
        """Write the cells from ``begin`` to ``end`` of a row."""
        self._move(begin, y)
        x = begin
        erased = False
        while x < end:
            char, pen = row[x]
            if char == " " and (blanks := self._blanks(row, x, end)):
                erased = x + blanks == len(row)
                x = self._erase(row, x, y, blanks)
                continue
            if char != " " or pen.back != self.pen.back or self.pen.shows_on_blanks or pen.shows_on_blanks:
                self._use(pen)  # else a blank looks the same in both
            self.parts.append(char)
            x += 1
        if erased:
            return
        if x >= len(row):  # what terminals do after the last column differs
            self.at = None
        elif self.at is not None:
            self.at = (x, y)

    def end(self) -> str:
        if self.parts:
            self._use(PLAIN)
        return "".join(self.parts)

    def _blanks(self, row: Row, x: int, end: int) -> int:
        """How many blanks of one look can be erased from here; 0 when writing them is as good."""
        pen = row[x][1]
        if pen.shows_on_blanks or (pen.back and not self.erases_in_colour):
            return 0
        stop, look = x, (pen.back, False)
        while stop < end and row[stop][0] == " " and (row[stop][1].back, row[stop][1].shows_on_blanks) == look:
            stop += 1
        return stop - x if stop - x >= (_ERASE if stop == len(row) else _SKIP) else 0

    def _erase(self, row: Row, x: int, y: int, blanks: int) -> int:
        back = row[x][1].back
        if self.pen.back != back or self.pen.shows_on_blanks:
            self._use(Pen(back=back))
        if x + blanks == len(row):
            self.parts.append("\x1b[K")
            self.at = (x, y)
            return len(row)
        self.parts.append(f"\x1b[{blanks}X\x1b[{blanks}C")
        return x + blanks

    def _use(self, pen: Pen) -> None:
        self.parts.append(change(self.pen, pen))
        self.pen = pen

    def _move(self, x: int, y: int) -> None:
        if self.at == (x, y):
            return
        if self.at is not None and self.at[1] == y and x > self.at[0]:
            forward = x - self.at[0]
            self.parts.append(f"\x1b[{forward}C" if forward > 1 else "\x1b[C")
        else:
            self.parts.append(f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H")
        self.at = (x, y)
