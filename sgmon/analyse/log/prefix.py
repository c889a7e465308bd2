"""Who wrote a line, and when: the server's own prefix (``LogRules.record``), uvicorn, NCCL, c10d, glog.

What collectors put before a line is learned from the text: ``envelope.py``.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

from msgspec import Struct

from sgmon.patterns import regex
from sgmon.servers.family import LogRules

_LEVELS = {"INFO": "info", "WARNING": "warning", "WARN": "warning", "ERROR": "error", "CRITICAL": "error"}
_LEVEL = r"(?P<level>INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL)"
_STAMPED = regex(
    r"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,]\d+)?\s+(?:- )?"
    + _LEVEL
    + r"\s+(?:- )?(?:(?P<pid>\d+)\s+)?(?:\[?[\w./-]+:\d+\]\s+)?"
)
_SHORT = regex(_LEVEL + r" \d\d-\d\d \d\d:\d\d:\d\d (?:\[?[\w.]+:\d+\] )?")
_NCCL = regex(
    r"(?P<host>[\w.-]+):\d+:\d+ \[(?P<gpu>\d+)\] "
    r"(?:(?:[\w/]+\.cc:\d+ )?NCCL (?P<level>INFO|WARN|ERROR)|(?=[\w/]+\.cc))"
)
_TORCH = regex(r"(?:\[rank(?P<rank>\d+)\]:)?\[(?P<level>[EWIF])\d{3,4} \d\d:\d\d:\d\d\.\d+ (?P<where>[\w.]+:\d+)\] ?")
_QUOTED = regex(r"\[rank(?P<rank>\d+)\]:(?!\[[EWIF]\d) ?")
#: what Triton Inference Server says before an exception of its Python backend is no part of it
_GLOG = regex(
    r"(?P<level>[IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.]+:\d+\] "
    r"(?:\"?(?:Failed to initialize Python stub: |failed to load '[^']{1,200}' version \d+: Internal: ))?"
)
_UVICORN = regex(r"(?P<level>INFO|WARNING|ERROR|CRITICAL):\s+")
_LETTERS = {"I": "info", "W": "warning", "E": "error", "F": "error"}


class Origin(Struct):
    """What a prefix told. body: where the message begins in the text. rank_inferred: from a GPU index.

    stamp: the time as it stands there, where it has no year. name, pid: of the process, as it calls itself.
    """

    rank: str = ""
    t: float | None = None
    level: str = ""
    body: int = 0
    source: str = ""  # own | uvicorn | nccl | torch | glog | other | ""
    rank_inferred: bool = False
    stamp: str = ""
    name: str = ""
    pid: str = ""
    quoted: bool = False  # torch prints an uncaught exception so, every line of it


def origin(text: str, log: LogRules) -> Origin:
    """Read every prefix at the beginning of ``text``."""
    found = Origin()
    record = log.record.match(text)
    if record:
        _own(record, text, log, found)
    elif text:
        _other(text, log, found)
    return found


def epoch(stamp: str | None, near: float | None = None) -> float | None:
    """Seconds since the epoch of "2026-01-29 13:12:36", taken as local time; None if it is no full date.

    near: seconds since the epoch of a time not half a year away, which tells the year of "01-29 13:12:36".
    """
    if not stamp:
        return None
    if len(stamp) < 19 or stamp[4] != "-":
        return _without_year(stamp, near) if near is not None and len(stamp) == 14 and stamp[2] == "-" else None
    minute = _minute(stamp[:10] + " " + stamp[11:16])
    return None if minute is None else minute + int(stamp[17:19])


def _without_year(stamp: str, near: float) -> float | None:
    year = _year(int(near // 86_400))
    minutes = (_minute(f"{at}-{stamp[:11]}") for at in (year, year - 1, year + 1))
    found = min((m for m in minutes if m is not None), key=lambda minute: abs(minute - near), default=None)
    return None if found is None or not stamp[12:].isdigit() else found + int(stamp[12:])


@lru_cache(maxsize=64)
def _year(day: int) -> int:
    return datetime.fromtimestamp(day * 86_400).year


@lru_cache(maxsize=4096)
def _minute(stamp: str) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _own(record: re.Match[str], text: str, log: LogRules, found: Origin) -> None:
    named = record.groupdict()
    stamp = named["time"] or ""
    found.t = epoch(stamp)
    found.stamp = stamp if found.t is None else ""
    found.name, found.pid = named.get("ranks") or "", named.get("pid") or ""
    found.rank = log.rank(named["ranks"]) if named.get("ranks") else ""
    found.level = _LEVELS.get(named.get("level") or "", "")
    found.body = record.end()
    found.source = "own"
    _after_record(text, found)


def _after_record(text: str, found: Origin) -> None:
    level = _UVICORN.match(text, found.body)
    if level:
        found.level = _LEVELS[level["level"]]
        found.source = "uvicorn"
        return
    if "NCCL" in text[found.body : found.body + 160]:
        nccl = _NCCL.match(text, found.body)
        if nccl:
            _nccl(nccl, found)


def _other(text: str, log: LogRules, found: Origin) -> None:
    if text[0] == "[":
        quoted = _QUOTED.match(text)
        if quoted:
            found.rank, found.body, found.quoted = f"rank{quoted['rank']}", quoted.end(), True
            return
        torch = _TORCH.match(text)
        if torch:
            found.rank = f"rank{torch['rank']}" if torch["rank"] else ""
            found.level = _LETTERS[torch["level"]]
            found.body = torch.end()
            found.source = "torch"
            return
    elif _stamped(text, found):
        return
    bare = log.bare_rank.match(text) if log.bare_rank is not None else None
    if bare:
        name = next(filter(None, bare.groups()), "")
        found.rank = log.rank(name) or name
        found.body = bare.end()
        found.source = "own"


def _stamped(text: str, found: Origin) -> bool:
    stamped = _STAMPED.match(text)
    if stamped:
        found.t = epoch(stamped["time"])
        found.level = _LEVELS.get(stamped["level"], "")
        found.rank = f"pid {stamped['pid']}" if stamped["pid"] else ""
        found.body = stamped.end()
        found.source = "other"
        return True
    for pattern in (_SHORT, _UVICORN):
        match = pattern.match(text)
        if match:
            found.level = _LEVELS.get(match["level"], "")
            found.source = "uvicorn" if pattern is _UVICORN else "other"
            if pattern is _SHORT:
                found.body = match.end()
            return True
    nccl = _NCCL.match(text) if " [" in text[:120] else None
    if nccl:
        _nccl(nccl, found)
        return True
    glog = _GLOG.match(text)
    if glog:
        found.level = _LETTERS[glog["level"]]
        found.body = glog.end()
        found.source = "glog"
        return True
    return False


def _nccl(match: re.Match[str], found: Origin) -> None:
    if (
        not found.rank
    ):  # the server's own prefix says it better: a GPU's number is the rank's only from --base-gpu-id 0
        found.rank = f"TP{match['gpu']}"
        found.rank_inferred = True
    found.level = "warning" if match["level"] in ("WARN", "ERROR") else "info"
    found.source = "nccl"
