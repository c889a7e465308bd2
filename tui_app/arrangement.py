"""Where the parts of the overview stand: pure, from the size of the screen and the rows that each part would fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

#: rows without which a panel says nothing, its title included
LEAST: Mapping[str, int] = {"1": 4, "2": 3, "3": 4, "4": 4, "5": 2}
#: after the end a title alone will do, until the log has its rows
_AFTER_THE_END: Mapping[str, int] = {**LEAST, "2": 1, "3": 1, "5": 1}
_PORT_WIDTH = 32
#: so many blank rows beside the log, and it stands better under the panels
_BLANK = 6
_LEFT_WIDTH = 66  # startup and port beside the GPUs
_PANELS_WIDTH = 112  # all panels beside the log
_WIDE = 170


def _all(_width: int, height: int) -> int:
    return height


class Wants(NamedTuple):
    """Rows. verdict_least: for the headline, a fact and the first step whole; panels: by number, titles included.

    gpus: (width, height) -> rows of these that the GPUs fill, with more of each where there is room.
    """

    verdict_least: int
    verdict: int
    panels: Mapping[str, int]
    has_ended: bool = False
    gpus: Callable[[int, int], int] = _all


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
        return _one_at_a_time(width, height, wants, active, zoomed)
    if width >= _WIDE and (made := _log_beside(width, room, wants)) is not None:
        return made
    bands = _bands(width, height)
    least = [_rows(band, _least(wants, active)) for band in bands]
    verdict = _verdict_rows(wants, room - sum(least), room * 2 // 5)
    heights = _share(bands, least, room - verdict, wants)
    spare = min(wants.verdict - verdict, heights[-1] - LEAST["4"] - 4)
    if spare > 0:  # the log has more than it needs
        verdict += spare
        heights[-1] -= spare
    return Arrangement(verdict, _places(bands, heights, wants), has_tabs=False)


def is_one_at_a_time(width: int, height: int) -> bool:
    """Whether a screen is too small for all panels."""
    return height < 22 or (width < 80 and height < 34)


def _least(wants: Wants, active: str) -> Mapping[str, int]:
    return {**_AFTER_THE_END, active: LEAST[active]} if wants.has_ended else LEAST


def _one_at_a_time(width: int, height: int, wants: Wants, active: str, zoomed: bool) -> Arrangement:
    """The active panel; a wide screen has room for the log beside it."""
    has_tabs = is_one_at_a_time(width, height)
    room = height - 1 - has_tabs
    beside = None if zoomed or active == "4" or width < _WIDE else _PANELS_WIDTH
    spare = 0 if zoomed or active == "4" else room - max(4, wants.panels.get(active, room))
    verdict = _verdict_rows(wants, room - 4, max(spare, room * 2 // 5))
    body = max(1, room - verdict)
    if beside is None:
        return Arrangement(verdict, {active: Place(0, 0, width, body)}, has_tabs)
    places = {active: Place(0, 0, beside - 1, body), "4": Place(beside, 0, width - beside, body)}
    return Arrangement(verdict, places, has_tabs)


def _log_beside(width: int, room: int, wants: Wants) -> Arrangement | None:
    """The log beside all others; None: they would leave too much blank, so that it stands better under them."""
    beside = max(_PANELS_WIDTH, width * 11 // 20)
    inner = beside - 1
    middle: _Band = [(inner - _PORT_WIDTH - 1, ["2"]), (_PORT_WIDTH, ["5"])]
    bands: list[_Band] = [[(inner, ["1"])], middle, [(inner, ["3"])]]
    least = [_rows(band, LEAST) for band in bands]
    verdict = _verdict_rows(wants, room - sum(least), room * 2 // 5)
    heights, blank = _share_beside(bands, least, room - verdict, wants)
    if blank > _BLANK:
        return None
    places = _places(bands, heights, wants)
    places["4"] = Place(beside, 0, width - beside, room - verdict)
    return Arrangement(verdict, places, has_tabs=False)


def _verdict_rows(wants: Wants, most: int, usual: int) -> int:
    """At least the headline, a fact and a step; all of it within ``usual`` rows."""
    return max(1, min(most, max(wants.verdict_least, min(wants.verdict, usual))))


def _bands(width: int, height: int) -> list[_Band]:
    """The bands from the top; the log is the last."""
    if width < 80:
        return [[(width, [number])] for number in "12534"]
    if width >= _WIDE:
        half = max(_PANELS_WIDTH, width * 11 // 20)
        return [[(half - 1, ["1", "3"]), (width - half, ["2", "5"])], [(width, ["4"])]]
    if width >= 110 and height >= 34:
        top: _Band = [(_LEFT_WIDTH, ["1", "5"]), (width - _LEFT_WIDTH - 1, ["2"])]
        return [top, [(width, ["3"])], [(width, ["4"])]]
    middle: _Band = [(width - _PORT_WIDTH - 1, ["2"]), (_PORT_WIDTH, ["5"])]
    return [[(width, ["1"])], middle, [(width, ["3"])], [(width, ["4"])]]


def _most_after_the_end(room: int) -> int:
    """Rows of a band, of ``room``: the log tells more."""
    return max(6, room // 3)


def _rows(band: _Band, of: Mapping[str, int]) -> int:
    return max(sum(of.get(number, 0) for number in column) for _, column in band)


def _share(bands: Sequence[_Band], least: Sequence[int], room: int, wants: Wants) -> list[int]:
    """The rows of each band. The panels get what they want while the log, the last band, keeps a quarter of the room,
    after the end the half; it gets the rest, too."""
    heights = list(least)
    spare = room - sum(heights)
    keep = max(0, room // (2 if wants.has_ended else 4) - LEAST["4"])
    order = sorted(range(len(bands) - 1), key=lambda index: wants.has_ended and bands[index][0][1][0] == "2")
    for index in order:  # of an ended server the processes tell more than the GPUs
        wanted = _rows(bands[index], wants.panels)
        wanted = max(heights[index], min(wanted, _most_after_the_end(room))) if wants.has_ended else wanted
        more = max(0, min(wanted - heights[index], spare - keep))
        if heights[index] + more >= _rows(bands[index], LEAST):  # with less than that a title says as much
            heights[index] += more
            spare -= more
    heights[-1] = max(1, heights[-1] + spare)
    return heights


def _share_beside(bands: Sequence[_Band], least: Sequence[int], room: int, wants: Wants) -> tuple[list[int], int]:
    """The rows of each band beside the log, and how many of them stay blank. The GPUs take what the others leave."""
    heights = list(least)
    spare = room - sum(heights)
    for index, band in enumerate(bands):
        more = max(0, min(_rows(band, wants.panels) - heights[index], spare))
        heights[index] += more
        spare -= more
    filled = _most_after_the_end(room) if wants.has_ended else wants.gpus(bands[1][0][0], heights[1] + spare)
    more = max(0, min(spare, filled - heights[1]))
    heights[1] += more
    heights[-1] = max(1, heights[-1] + spare - more)
    return heights, spare - more


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
