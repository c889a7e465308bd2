"""The cells of a screen. Pure."""

from __future__ import annotations

from collections.abc import Iterable
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
        pen = pen_of(style, system)
        bare = (" ", pen if pen.shows_on_blanks else Pen(back=pen.back))
        if text.isascii():  # one cell each
            part = text[: width - x]
            row[x : x + len(part)] = [bare if char == " " else (char, pen) for char in part]
            if len(part) < len(text):
                return
            x += len(part)
            continue
        for char in text:
            cells = 1 if char.isascii() else cell_len(char)
            if cells == 0:
                if 0 < x <= width:  # it belongs to the character before
                    row[x - 1] = (row[x - 1][0] + char, row[x - 1][1])
                continue
            if x + cells > width:
                return
            row[x] = bare if char == " " else (char, pen)
            if cells == 2:
                row[x + 1] = ("", pen)
            x += cells
