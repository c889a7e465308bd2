"""The shortest movements of the cursor along a row. Pure."""

from __future__ import annotations

from functools import lru_cache

from tui_app.output.abilities import Abilities

TAB = 8  # columns


def forward(cells: int) -> str:
    return "" if cells == 0 else "\x1b[C" if cells == 1 else f"\x1b[{cells}C"


def back(cells: int) -> str:
    way = f"\x1b[{cells}D"
    return "\b" * cells if cells <= len(way) else way


@lru_cache(maxsize=16384)
def forward_by_tabs(begin: int, end: int, width: int) -> str:
    """From column ``begin`` to ``end``, by tab stops where that is shorter. A tab writes nothing, and behind the last
    stop it leads to the last column."""
    stops, rest = end // TAB - begin // TAB, end % TAB
    ways = [forward(end - begin)]
    if stops:
        ways.append("\t" * stops + forward(rest))
    if rest and end - rest + TAB < width:
        ways.append("\t" * (stops + 1) + back(TAB - rest))
    return min(ways, key=len)


def over(begin: int, end: int, width: int, can: Abilities) -> str:
    """The shortest way to the right that writes nothing."""
    return forward_by_tabs(begin, end, width) if can.tabs else forward(end - begin)
