"""Who wrote a line, and when, by what other programs put before it."""

from __future__ import annotations

import re
from functools import lru_cache

from sgmon.analyse.log.stamps import STAMP, stamp
from sgmon.patterns import regex

_STAMP = regex(STAMP)
_TAG = regex(r"(?<=stdout|stderr) [PF] $")  # partial or full: no writer
_LEVEL = regex(r"\b(?:DEBUG|DEBG|INFO|NOTICE|DEFAULT|WARN(?:ING)?|ERROR|CRITICAL|FATAL|info|std(?:out|err))\b")
_DECIMAL = regex(r"\d+\.\d{3,}")
_NUMBERED = regex(r"(?:^|[\s:])(\d+)$")


def read_prefix(prefix: str, one_writer: bool, numbers_name: bool) -> tuple[str, float | None]:
    """Who wrote the line, and when. one_writer, numbers_name: as in ``Envelope``."""
    rest, time = prefix, ""
    while (match := _STAMP.search(rest)) is not None:
        rest, time = rest[: match.start()] + rest[match.end() :], match[0]
    writer = "" if one_writer else _writer(rest)
    if not numbers_name:
        writer = _unnumbered(writer)
    return writer, stamp(time) if time else None


def number_before(prefix: str) -> re.Match[str] | None:
    """The number at the end of a prefix, of the line or of a task, as group 1."""
    return _NUMBERED.search(_writer(prefix))


def without_level(text: str) -> str:
    """``text`` without the words for levels."""
    return _LEVEL.sub("", text)


@lru_cache(maxsize=4096)
def _unnumbered(writer: str) -> str:
    return _NUMBERED.sub("", writer)


@lru_cache(maxsize=4096)
def _writer(prefix: str) -> str:
    """What remains of a prefix without times, levels and marks: a container, a pid, a host, a task."""
    rest = _LEVEL.sub("", _DECIMAL.sub("", _STAMP.sub("", _TAG.sub(" ", prefix))))
    rest = re.sub(r"\s+", " ", rest).strip(" \t:|>\"'=,.-")
    return rest if any(c.isalnum() for c in rest) else ""


def container(found: object) -> str:
    """The name that a collector gives the writer, in the usual places."""
    if not isinstance(found, dict):
        return ""
    for path in (
        ("kubernetes", "pod_name"),
        ("resource", "labels", "pod_name"),
        ("container_name",),
        ("pod",),
        ("_HOSTNAME",),
    ):
        value: object = found
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str):
            return value
    return ""
