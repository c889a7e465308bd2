"""Where the parts of the overview stand: pure, from the size of the screen and the rows that each part would fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

#: rows without which a panel says nothing, its title included
LEAST: Mapping[str, int] = {"1": 4, "2": 3, "3": 4, "4": 4, "5": 2}
_AFTER_THE_END: Mapping[str, int] = {**LEAST, "3": 2}
_PORT_WIDTH = 32
_ROWS_OF_A_GPU = 4  # holders, power, history
_LEFT_WIDTH = 66  # startup and port beside the GPUs
_PANELS_WIDTH = 112  # all panels beside the log


class Wants(NamedTuple):
    """Rows. verdict_least: for the headline, a fact and the first step whole; panels: by number, titles included."""

    verdict_least: int
    verdict: int
    panels: Mapping[str, int]
    has_ended: bool = False


class Place(NamedTuple):
    """Cells, from the top left of the body."""

    x: int
    y: int
    width: int
    height: int


class Arrangement(NamedTuple):
    """verdict: its rows; places: of the panels that are shown; has_tabs: one panel at a time, their names above."""

    verdict: int
    places: Mapping[str, Place]
    has_tabs: bool


#: a band takes the whole width; its columns stand beside each other; a column is panels under each other
_Band = Sequence[tuple[int, Sequence[str]]]  # (width, panels)


def arrange(width: int, height: int, wants: Wants, active: str, zoomed: bool = False) -> Arrangement:
    """The places for a screen of ``width`` x ``height`` cells; the last row is for the keys."""
    room = height - 1
    if zoomed or is_one_at_a_time(width, height):
        has_tabs = is_one_at_a_time(width, height)
        spare = 0 if zoomed or active == "4" else room - has_tabs - max(4, wants.panels.get(active, room))
        verdict = _verdict_rows(wants, room - has_tabs - 4, max(spare, (room - has_tabs) * 2 // 5))
        body = max(1, room - has_tabs - verdict)
        return Arrangement(verdict, {active: Place(0, 0, width, body)}, has_tabs)
    bands, beside = _bands(width, height)
    least = [_rows(band, _AFTER_THE_END if wants.has_ended else LEAST) for band in bands]
    verdict = _verdict_rows(wants, room - sum(least), room * 2 // 5)
    heights = _share(bands, least, room - verdict, wants)
    spare = min(wants.verdict - verdict, heights[-1] - LEAST["4"] - 4) if beside is None else 0
    if spare > 0:  # the log has more than it needs
        verdict += spare
        heights[-1] -= spare
    places = _places(bands, heights, wants)
    if beside is not None:
        places["4"] = Place(beside, 0, width - beside, room - verdict)
    return Arrangement(verdict, places, has_tabs=False)


def is_one_at_a_time(width: int, height: int) -> bool:
    """Whether a screen is too small for all panels."""
    return height < 22 or (width < 80 and height < 34)


def _verdict_rows(wants: Wants, most: int, usual: int) -> int:
    """At least the headline, a fact and a step; all of it within ``usual`` rows."""
    return max(1, min(most, max(wants.verdict_least, min(wants.verdict, usual))))


def _bands(width: int, height: int) -> tuple[list[_Band], int | None]:
    """The bands from the top, and the column where the log begins when it stands beside them all."""
    if width < 80:
        return [[(width, [number])] for number in "12534"], None
    if width >= 170:
        left = max(_PANELS_WIDTH, width * 11 // 20)
        inner = left - 1
        return [
            [(inner, ["1"])],
            [(inner - _PORT_WIDTH - 1, ["2"]), (_PORT_WIDTH, ["5"])],
            [(inner, ["3"])],
        ], left
    if width >= 110 and height >= 34:
        top: _Band = [(_LEFT_WIDTH, ["1", "5"]), (width - _LEFT_WIDTH - 1, ["2"])]
        return [top, [(width, ["3"])], [(width, ["4"])]], None
    middle: _Band = [(width - _PORT_WIDTH - 1, ["2"]), (_PORT_WIDTH, ["5"])]
    return [[(width, ["1"])], middle, [(width, ["3"])], [(width, ["4"])]], None


def _rows(band: _Band, of: Mapping[str, int]) -> int:
    return max(sum(of.get(number, 0) for number in column) for _, column in band)


def _share(bands: Sequence[_Band], least: Sequence[int], room: int, wants: Wants) -> list[int]:
    """The rows of each band. The panels get what they want while the log keeps a quarter of the room; the last band
    gets the rest. After the end the log has it all."""
    heights = list(least)
    spare = room - sum(heights)
    has_log = list(bands[-1][0][1]) == ["4"]
    keep = max(0, room // 4 - LEAST["4"]) if has_log and not wants.has_ended else 0
    for index in range(len(bands) - has_log):
        wanted = min(_rows(bands[index], wants.panels), 6) if wants.has_ended else _rows(bands[index], wants.panels)
        more = max(0, min(wanted - heights[index], spare - keep))
        heights[index] += more
        spare -= more
    if not has_log:  # beside the log the GPUs have more to show of each
        more = min(spare, _ROWS_OF_A_GPU * max(0, wants.panels.get("2", 0) - 2))
        heights[1] += more
        spare -= more
    heights[-1] = max(1, heights[-1] + spare)
    return heights


def _places(bands: Sequence[_Band], heights: Sequence[int], wants: Wants) -> dict[str, Place]:
    places: dict[str, Place] = {}
    y = 0
    for band, height in zip(bands, heights, strict=True):
        x = 0
        for width, column in band:
            at, left = y, height
            for number in reversed(column[1:]):  # those below take what they want, the first the rest
                rows = max(0, min(wants.panels.get(number, 0), left - LEAST[column[0]]))
                left -= rows
                places[number] = Place(x, y + left, width, rows)
            places[column[0]] = Place(x, at, width, left)
            x += width + 1
        y += height
    return places
