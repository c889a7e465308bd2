"""Texts that a terminal has cut at its width, as they are copied from its window: lines are put together first."""

from __future__ import annotations

from itertools import pairwise

from sgmon.analyse.log.prefix import origin
from sgmon.analyse.log.stamps import STAMP
from sgmon.patterns import regex
from sgmon.servers import registry

#: Lines that are looked at; widths of terminals.
LOOKED, NARROW, WIDE = 400, 60, 300
#: Lines that must go on in the next one.
CUT = 3
_TIME = regex(r".{0,40}?" + STAMP)
_BEGINS = regex(r"\s*$|\s*File \"|\s*[~^]+\s*$|Traceback |Killed\b|Aborted\b|Terminated\b")
#: lines that begin alike are bars or repetitions
_ALIKE = 8


def width_of(text: str) -> int:
    """The width at which lines are cut, 0 where they are not: nearly every line of that length, and none is longer,
    goes on in one that begins like no line of a log."""
    lines = text.split("\n")[:LOOKED]
    width = max(map(len, lines), default=0)
    if not NARROW <= width <= WIDE:
        return 0
    after = [_goes_on(line, following) for line, following in pairwise(lines) if len(line) == width]
    going = sum(after)
    return width if going >= CUT and going > 4 * (len(after) - going) else 0


def unwrapped(text: str, width: int) -> tuple[str, list[int]]:
    """The text with whole lines, and for each of them the number of its first part in ``text``, from 1."""
    found: list[str] = []
    numbers: list[int] = []
    last = ""
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        if found and len(last) == width and _goes_on(last, line):
            found[-1] += line
        else:
            found.append(line)
            numbers.append(number)
        last = line
    return "\n".join(found) + "\n", numbers


def _goes_on(line: str, following: str) -> bool:
    if following[:_ALIKE] == line[:_ALIKE] or _BEGINS.match(following) or _TIME.match(following):
        return False
    prefixes = (origin(following, log) for log in registry.log_rules())
    return not any(where.body or where.source for where in prefixes)
