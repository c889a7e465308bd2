"""One line of a log, described: cleaned text, rank, time, level, kind, milestone. Pure, without memory."""

from __future__ import annotations

import re

from sgmon.analyse.log import bars, catalogue
from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.prefix import INNER, Origin, origin
from sgmon.analyse.log.shapes import matches
from sgmon.model.log import LogLine
from sgmon.text import clean, mask

#: What is looked at of one line; longer ones are a dump of something (server_args are 3-25 kB).
LOOK = 65_536
#: What is kept of a line for the screen.
SHOWN = 4_000

#: Our own look at the server leaves these in its log; nothing that a server under start does.
PROBE = re.compile(
    r'"GET /health(?:_generate)?(?:\?\S*)? HTTP/|Health check request received during shutdown'
    r"|Prefill batch(?: \[\d+\])?[.,] #new-seq: 1, #new-token: 1, #cached-token: \d+,"
)
PROBE_KEYS = ('"GET /health', "Health check request received", "#new-seq: 1, #new-token: 1,")

_EXCEPTION = re.compile(
    r"(?:[A-Za-z_][\w.]*\.)?(?P<name>[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout|OOM)|Exception)(?::|$)"
)
_ACCESS = re.compile(r'"(?:GET|POST|PUT|DELETE|HEAD|OPTIONS) \S+ HTTP/[\d.]+" \d')
_FRAME_LINE = re.compile(
    r'\s+File ".*", line \d+|\s+[~^]+\s*$|Traceback \(most recent call last\)'
    r"|(?:Current thread|Thread) 0x[0-9a-f]+|Extension modules: |During handling of the above|The above exception was"
)
_WARNING = re.compile(r"\bwarn(?:ing)?\b|deprecated|\bfailed to\b|\bnot (?:set|found|available)\b", re.I)


def describe(number: int, text: str) -> LogLine:
    """What line ``number`` is. Of several glued records: rank and time of the last, kind of the weightiest."""
    text = text.rstrip("\r\n")
    if "\r" in text:
        text = _newest_frame(text)
    shown = clean(mask(text[:LOOK]) if len(text) <= LOOK else mask(text[:LOOK]) + "…", SHOWN)
    text = text[:LOOK]
    if "\x00" in text:
        text = text.replace("\x00", "")
    if "\x1b" in text:
        text = clean(text)
    whole = origin(text)
    rank, t = whole.rank, whole.t
    kind = milestone = level = ""
    for fragment in fragments(text):
        found = _fragment(fragment)
        if found.kind and (not kind or _ORDER[found.kind] < _ORDER[kind]):
            kind = found.kind
        milestone = found.milestone or milestone
        rank = found.where.rank or rank
        t = found.where.t if found.where.t is not None else t
        level = found.level if _worse(found.level, level) else level
    return LogLine(number, shown, rank, t, level, kind, milestone)


def fragments(text: str) -> list[str]:
    """``text`` cut at ``\\r`` and where another record begins inside it (glued to a bar, or torn)."""
    found: list[str] = []
    for part in text.split("\r") if "\r" in text else (text,):
        start = 0
        if "][" in part or "[20" in part[1:] or "[rank" in part[1:]:
            for match in INNER.finditer(part, 1):
                if match.start() > start and not _is_outer(part[start : match.start()], start):
                    found.append(part[start : match.start()])
                    start = match.start()
        if start < len(part):
            found.append(part[start:])
    return found


def exception_name(body: str) -> str:
    """ "AssertionError" if this is the last line of a traceback ("pkg.Error: text" at the left edge), else ""."""
    match = _EXCEPTION.match(body)
    return match["name"] if match else ""


def looks_like_traceback(text: str) -> bool:
    """Whether the line can only be part of a traceback or of faulthandler's dump."""
    return bool(_FRAME_LINE.match(text)) or "Traceback (most recent call last)" in text


def is_error(rule: Rule, body: str) -> bool:
    """Whether a matching error rule counts here: not in quoted source code, some only in exception lines."""
    if body[:1].isspace():
        return False
    return not rule.in_block or bool(exception_name(body))


class _Found:
    __slots__ = ("kind", "level", "milestone", "where")

    def __init__(self, where: Origin) -> None:
        self.where = where
        self.kind = ""
        self.milestone = ""
        self.level = where.level


_ORDER = {"error": 0, "milestone": 1, "traceback": 2, "bar": 3, "noise": 4, "warning": 5, "access": 6, "": 9}
_LEVELS = {"": 0, "info": 1, "warning": 2, "error": 3}


def _worse(new: str, old: str) -> bool:
    return _LEVELS[new] > _LEVELS[old]


def _fragment(text: str) -> _Found:
    where = origin(text)
    found = _Found(where)
    body = text[where.body :]
    noise = False
    for rule, _match in matches(text):
        if rule.group == "milestone" and not rule.weak and not found.milestone:
            found.milestone = rule.name
            found.kind = "milestone" if not found.kind else found.kind
        elif rule.group == "milestone" and not found.milestone and rule.name not in ("launch",):
            found.milestone = rule.name
            found.kind = found.kind or "milestone"
        elif rule.group == "noise":
            noise = True
        elif rule.group == "error" and not noise and is_error(rule, body) and not rule.hint:
            found.kind = "warning" if catalogue.GRADES[rule.grade] == "notice" else "error"
    if noise:
        found.kind = "noise" if found.kind != "milestone" else found.kind
        found.level = ""
        return found
    if found.kind == "error" or exception_name(body):
        found.kind, found.level = "error", "error"
    elif looks_like_traceback(text[where.body :]) or looks_like_traceback(text):
        found.kind = "traceback"
        if "hit an exception" in body:
            found.kind, found.level = "error", "error"
    elif "%" in text and (newest := bars.frames(text)):
        found.kind = "bar"
        found.milestone = newest[-1].name
    elif not found.kind and "HTTP/" in body and _ACCESS.search(body):
        found.kind = "access"
    elif not found.kind and (where.level == "error"):
        found.kind = "error"
    elif not found.kind and (where.level == "warning" or _sounds_wrong(body[:200])):
        found.kind, found.level = "warning", "warning"
    return found


def _sounds_wrong(text: str) -> bool:
    low = text.lower()  # the words first: ignoring case costs re 100 ns a letter
    if not ("warn" in low or "not " in low or "deprecated" in low or "failed to" in low):
        return False
    return _WARNING.search(text) is not None


def _is_outer(head: str, start: int) -> bool:
    """Whether what stands before an inner record is only a collector's prefix (Kubernetes, compose, Ray ...)."""
    return start == 0 and origin(head + "[").body >= len(head.rstrip())


def _newest_frame(text: str) -> str:
    """Of a line of bar frames: the last that is not empty, and what is glued to it."""
    parts = [part for part in text.split("\r") if part.strip()]
    return parts[-1] if parts else ""
