"""What a line of the log says about an error near it: what helps, that the server goes on."""

from __future__ import annotations

import re

from sgmon.patterns import regex
from sgmon.text import safe

#: Longest advice kept.
ADVICE_TEXT = 300
_SURVIVED = regex(
    r"\bfall(?:ing|s)?[ -]?back\b|\bfallback\b|\bretry(?:ing)?\b|\bcontinu(?:e|ing) without\b|\binstead\b"
    r"|\bskipp(?:ed|ing)\b|\bignor(?:ed|ing)\b",
    re.I,
)
_DO = (
    r"(?:(?:try(?: to)?|set|us|increas|reduc|decreas|disabl|add|lower|install|upgrad|downgrad|specify|enabl|rais"
    r"|chang|pass)(?:e|ing)?\b)"
)
_REMEDY = regex(
    r"\bTo (?:work around|fix|resolve|avoid) th\w+|\b(?:[Pp]lease|[Tt]ry(?: to)?|[Cc]onsider|[Yy]ou can) "
    + _DO
    + r"|^\s*(?:\d+[.)]|[-*]) (?i:"
    + _DO
    + r")"
)


def remedy_in(body: str) -> str:
    """The advice in a line, from its first word on; "" without any."""
    match = _REMEDY.search(body)
    return "" if match is None else safe(body[match.start() :].strip(), ADVICE_TEXT)


def goes_on(body: str) -> bool:
    """Whether a line says that the error was overcome: a fallback, a retry, something skipped."""
    return _SURVIVED.search(body) is not None
