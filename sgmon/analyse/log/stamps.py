"""Times that other programs write before a line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

from sgmon.patterns import regex

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_MONTHS = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
#: Source of a pattern, without groups.
STAMP = (
    r"(?:\d{4}[-/]\d\d[-/]\d\d(?:[T ]|\s@\s)" + _CLOCK + r"(?:Z|\s?[+-]\d\d:?\d\d)?"
    r"|"
    + _MONTHS
    + r" [ \d]?\d(?:, \d{4})?(?: @|,)? "
    + _CLOCK
    + r"|\b1[5-9]\d{8}\.\d+\b|@[0-9a-f]{24}\b|\d\d:\d\d:\d\d[.,]\d+)"
)
_PARTS = regex(r"(\d{4})[-/](\d\d)[-/](\d\d).*?(\d\d):(\d\d):(\d\d)")
_WORDS = regex(r"(\w{3}) +(\d+)(?:, (\d{4}))?.*?(\d\d):(\d\d):(\d\d)")
_NAMES = _MONTHS[3:-1].split("|")
#: Names of the fields in which collectors keep the time of an entry.
_FIELDS = ("time", "timestamp", "@timestamp", "ts", "__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP", "asctime")


def stamp(found: str | Mapping[str, object]) -> float | None:
    """Seconds since the epoch of a time, or of the time in a JSON entry; the zone is left out. None: it has none."""
    if isinstance(found, str):
        return _seconds(found.partition(".")[0] if not found.startswith("1") else found)
    return next((t for name in _FIELDS if (t := _of_field(found.get(name))) is not None), None)


@lru_cache(maxsize=4096)
def _seconds(found: str) -> float | None:
    parts = _PARTS.match(found)
    if parts:
        return _local(*(int(part) for part in parts.groups()))
    words = _WORDS.match(found)
    if words and words[3] and words[1] in _NAMES:
        return _local(int(words[3]), _NAMES.index(words[1]) + 1, *(int(words[n]) for n in (2, 4, 5, 6)))
    if re.fullmatch(r"1[5-9]\d{8}\.\d+", found):
        return float(found)
    return None


def _of_field(value: object) -> float | None:
    if isinstance(value, (int, float)) or (isinstance(value, str) and value.isdigit()):
        number = float(value)
        while number > 1e11:  # ms, us or ns
            number /= 1000
        return number if number > 1e9 else None
    return stamp(value) if isinstance(value, str) else None


def _local(*parts: int) -> float | None:
    try:
        year, month, day, hour, minute, second = parts
        return datetime(year, month, day, hour, minute, second).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
