"""When a line was written, by the stamp near its beginning: quick, for lines of many machines to be put in order."""

from __future__ import annotations

from sgmon.analyse.log.prefix import epoch
from sgmon.patterns import regex

_STAMP = regex(r"(?:\d{4}-)?\d\d-\d\d[ T]\d\d:\d\d:\d\d")
#: characters in which a stamp is looked for
_HEAD = 120


def stamp_epoch(text: str, near: float) -> float | None:
    """The clock that wrote it, read as local time; None: no stamp. near: tells the year where it has none."""
    found = _STAMP.search(text, 0, _HEAD)
    return epoch(found[0].replace("T", " "), near) if found is not None else None
