"""The shortest movements of the cursor along a row, and the shortest way to write equal characters. Pure."""

from __future__ import annotations

from tui_app.output.abilities import Abilities


def forward(cells: int) -> str:
    return "" if cells == 0 else "\x1b[C" if cells == 1 else f"\x1b[{cells}C"


def back(cells: int) -> str:
    way = f"\x1b[{cells}D"
    return "\b" * cells if cells <= len(way) else way


def repeated(char: str, count: int, can: Abilities) -> str:
    """``count`` times a character."""
    if count > 1 and len(char) == 1 and (can.repeats or (can.repeats_ascii and char.isascii())):
        again = f"\x1b[{count - 1}b"
        if len(again) < (count - 1) * len(char.encode()):
            return char + again
    return char * count
