"""The rule that a prefix of a line is an example of: marks as they are, numbers, words, times as kinds."""

from __future__ import annotations

import re

from msgspec import Struct

from sgmon.analyse.log.stamps import STAMP
from sgmon.patterns import regex

_TOKEN = regex(r"(?P<time>" + STAMP + r")|(?P<space>\s+)|(?P<run>[^\s\[\](){}<>|\"'=,;]+)|(?P<mark>.)", re.DOTALL)
_STRONG = regex(r"[\[\](){}<>|\"=]|::")
FIELD = regex(r"\s*\"?MESSAGE\"?\s*[=:]\s*\"?$")  # journalctl -o export, verbose, json-pretty
_QUOTED = {
    '"': regex(r'((?:[^"\\]|\\.|"")*)"?'),
    "'": regex(r"((?:[^'\\]|\\.|'')*)'?"),
}


class Shape(Struct, frozen=True):
    """One way in which lines are wrapped. quote: the value stands between such marks. alone: other lines are fields
    of an entry, not text. doubled: a mark inside is written twice (CSV)."""

    source: str
    pattern: re.Pattern[str]
    quote: str = ""
    doubled: bool = False
    alone: bool = False


def shape_of(prefix: str) -> Shape | None:
    """The rule that a prefix is an example of; None where it reads like prose."""
    if not prefix.strip():
        return Shape(prefix, re.compile(re.escape(prefix) + r"|\s*$"))
    if FIELD.match(prefix):
        quote = '"' if prefix.endswith('"') else ""
        return Shape(prefix, re.compile(re.escape(prefix)), quote, alone=True)
    wild = is_strong(prefix)
    if not wild and len(prefix.split()) > 4:
        return None
    quote = prefix[-1] if prefix[-1] in _QUOTED else ""
    if not quote and not prefix[-1].isspace() and prefix[-1].isalnum() and not re.search(f"{STAMP}$", prefix):
        return None
    tokens = list(_TOKEN.finditer(prefix))
    if wild and tokens[-1]["run"] and prefix[-1] not in ":-" and not prefix[-1].isdigit():
        return None  # nothing tells where its last word ends: it would take the first word of any line
    parts = [_general(match, wild, last=match is tokens[-1], first=match is tokens[0]) for match in tokens]
    source = "".join(parts)
    return Shape(source, re.compile(source), quote, doubled=prefix.endswith(',"'))


def _general(match: re.Match[str], wild: bool, last: bool, first: bool) -> str:
    text = match[0]
    if match["time"]:
        return STAMP
    if match["space"]:
        if last:
            return f"(?:{re.escape(text)}|\\s*$)"
        return r"\s*" if first else r"\s+"
    if match["mark"]:
        return re.escape(text)
    core = text.rstrip(":-") if text.strip(":-") else ""
    end = text[len(core) :]
    if core.isdigit():
        return r"\d+" + ("[:-]" if end in (":", "-") and last else re.escape(end))
    if not wild:
        return re.sub(r"\d+", r"\\d+", re.escape(core)) + re.escape(end)
    if not core:
        return re.escape(end)
    if re.fullmatch(r"[\d.:,/-]+", core):
        return r"[\d.:,/-]+" + re.escape(end)
    return r"[^\s\[\](){}<>|\"'=,;]+" + re.escape(end)


def is_strong(prefix: str) -> bool:
    """Whether the structure alone tells it from text: marks, a time, or no letters at all."""
    if _STRONG.search(prefix) or has_time(prefix):
        return True
    return not any(c.isalpha() for c in prefix)


def has_time(prefix: str) -> bool:
    return re.search(STAMP, prefix) is not None


def unquoted(text: str, shape: Shape) -> str:
    match = _QUOTED[shape.quote].match(text)
    value = match[1] if match else text
    if shape.doubled:
        return value.replace(shape.quote * 2, shape.quote)
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), value) if "\\" in value else value
