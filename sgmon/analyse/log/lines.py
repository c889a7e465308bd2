"""One line of a log, described: cleaned text, rank, time, level, kind, milestone. Pure, without memory."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse.log.envelope import Envelope, uncoloured
from sgmon.analyse.log.prefix import epoch
from sgmon.analyse.log.records import Record, fragments
from sgmon.analyse.log.shapes import announced
from sgmon.model.log import LogLine
from sgmon.servers.family import LogRules
from sgmon.text import clean, safe

#: What is looked at of one line; longer ones are a dump of something (server_args are 3-25 kB).
LOOK = 65_536
#: What is kept of a line for the screen.
SHOWN = 4_000

_ORDER = {"error": 0, "milestone": 1, "traceback": 2, "bar": 3, "noise": 4, "warning": 5, "access": 6, "": 9}
_LEVELS = {"": 0, "info": 1, "warning": 2, "error": 3}


def describe_in(number: int, text: str, envelope: Envelope, near: float | None = None) -> LogLine:
    """What line ``number`` of a wrapped log is: described without its envelope, shown with it (JSON: its text)."""
    opened = next(iter(envelope.open([uncoloured(text[:LOOK])], number)), None)
    if opened is None:
        return LogLine(number, safe(text[:LOOK], SHOWN))
    line = describe(number, opened.text, envelope.rules, opened.t if opened.t is not None else near)
    shown = line.text if text.lstrip()[:1] == "{" else safe(text[:LOOK], SHOWN)
    body = len(shown) - len(line.text) + line.body if shown.endswith(line.text) else 0
    return replace(line, text=shown, t=line.t if line.t is not None else opened.t, body=body)


def describe(number: int, text: str, log: LogRules, near: float | None = None) -> LogLine:
    """What line ``number`` is. Of several glued records: rank and time of the last, kind of the weightiest.

    near: see ``prefix.epoch``.
    """
    text = text.rstrip("\r\n")
    if "\r" in text:
        text = _newest_frame(text)
    shown = safe(text[:LOOK] if len(text) <= LOOK else text[:LOOK] + "…", SHOWN)
    text = text[:LOOK]
    if "\x00" in text:
        text = text.replace("\x00", "")
    if "\x1b" in text:
        text = clean(text)
    rank, kind, milestone, level = "", "", "", ""
    t: float | None = None
    body = 0
    parts = fragments(text, log)
    for fragment in parts:
        record = Record(fragment, announced(log, fragment), log)
        its_kind, its_level, its_milestone = record.described()
        if its_kind and (not kind or _ORDER[its_kind] < _ORDER[kind]):
            kind = its_kind
        milestone = its_milestone or milestone
        rank = record.where.rank or rank
        own = record.where.t if record.where.t is not None else epoch(record.where.stamp, near)
        t = own if own is not None else t
        level = its_level if _LEVELS[its_level] > _LEVELS[level] else level
        body = record.where.body
    if len(parts) != 1 or shown[:body] != text[:body]:
        body = 0
    return LogLine(number, shown, rank, t, level, kind, milestone, body=body)


def _newest_frame(text: str) -> str:
    """Of a line of bar frames: the last that is not empty, and what is glued to it."""
    parts = [part for part in text.split("\r") if part.strip()]
    return parts[-1] if parts else ""
