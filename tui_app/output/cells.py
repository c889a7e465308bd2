"""The cells of a screen. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len

from tui_app.output.pens import PLAIN, Pen, pen_of

if TYPE_CHECKING:
    from rich.color import ColorSystem
    from rich.segment import Segment

#: (character, look); "" is the right half of the wide character before it
Cell = tuple[str, Pen]
Row = list[Cell]


def blank(width: int, height: int, pen: Pen = PLAIN) -> list[Row]:
    """An empty screen."""
    return [[(" ", pen)] * width for _ in range(height)]


def put(row: Row, x: int, segments: Iterable[Segment], system: ColorSystem | None) -> None:
    """Write segments into a row, from cell ``x`` on; what lies beyond its end is left out."""
    width = len(row)
    for text, style, control in segments:
        if control:
            continue
        joined, cells = _cells_of(text, pen_of(style, system))
        if joined and 0 < x <= width:
            _join(row, x - 1, joined)
        room = max(0, width - x)
        if len(cells) > room:
            halves = cells[room][0] == ""  # no half of a wide character
            row[x:] = [*cells[: room - halves], *row[width - halves :]]
            return
        row[x : x + len(cells)] = cells
        x += len(cells)


@lru_cache(maxsize=1024)
def _cells_of(text: str, pen: Pen) -> tuple[str, tuple[Cell, ...]]:
    """The characters without a width that a text begins with, and its cells. Kept: what is painted again is mostly
    what stood there before."""
    blank_cell = (" ", pen if pen.shows_on_blanks else Pen(back=pen.back))
    joined, cells = "", list[Cell]()
    for char in text:
        wide = 1 if char.isascii() else cell_len(char)
        if wide:
            cells.append(blank_cell if char == " " else (char, pen))
            cells += [("", pen)] * (wide - 1)
        elif cells:
            _join(cells, len(cells) - 1, char)
        else:
            joined += char
    return joined, tuple(cells)


def _join(row: Row, x: int, marks: str) -> None:
    """Add marks without a width to the character of cell ``x``."""
    x -= row[x][0] == "" and x > 0
    row[x] = (row[x][0] + marks, row[x][1])
