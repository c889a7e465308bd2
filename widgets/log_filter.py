"""What to look for in the log: text or regular expression, found out from the pattern itself."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

from sgmon.model import LogLine
from widgets.log_text import Hint

# Signs that somebody means a regular expression. A lone ".", "[" or "(" is text: "[TP3]", "f(x)", "0.5.23".
_REGEX = re.compile(r"\.[*+?]|\\[dwsbDWSB.]|\||^\^|\$$|\[[^\]]+\][*+?{]|\(\?|\)[*+?]|\w[*+]")


@dataclass(frozen=True)
class Pattern:
    """One search. ``inverse`` asks for the lines without it."""

    text: str
    regex: re.Pattern[str]
    is_regex: bool
    inverse: bool = False

    def hits(self, line: LogLine) -> bool:
        return (self.regex.search(line.text) is None) if self.inverse else bool(self.regex.search(line.text))

    def hint(self) -> Hint | None:
        """A quick look at many lines at once; None where it could miss one."""
        if self.inverse or (self.is_regex and re.search(r"[\^$]|\\[AZ]|\(\?", self.text)):
            return None
        literal = _needed(self.text) if self.is_regex else self.text
        if not literal:
            search = self.regex.search
            return lambda text: search(text) is not None
        if not self.regex.flags & re.IGNORECASE:
            return lambda text: literal in text
        if not literal.isascii():
            return None  # lower() and the matching of re differ outside ASCII
        return lambda text: literal in text.lower()

    @property
    def label(self) -> str:
        """How it shows in the title."""
        mark = "!" if self.inverse else ""
        return f"{mark}/{self.text}/" if self.is_regex else f'{mark}"{self.text}"'


def parse(typed: str) -> Pattern:
    """A pattern from what was typed: a leading "!" inverts, "/.../" is a regular expression in any case.

    Lower case ignores case. A pattern that is no valid regular expression is taken as text.
    """
    inverse = typed.startswith("!") and len(typed) > 1
    text = typed[1:] if inverse else typed
    forced = len(text) > 2 and text.startswith("/") and text.endswith("/")
    if forced:
        text = text[1:-1]
    flags = re.IGNORECASE if text == text.lower() else re.RegexFlag(0)
    if forced or _REGEX.search(text):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "possible nested set": what was typed is what is meant
                return Pattern(text, re.compile(text, flags), True, inverse)
        except re.error:
            pass
    return Pattern(text, re.compile(re.escape(text), flags), False, inverse)


def _needed(pattern: str) -> str:
    """The longest text that every match of a regular expression holds; "" when that is not plain to see."""
    bare = re.sub(r"\\.|\[[^\]]*\]", "\0", pattern)
    if re.search(r"[|()\[\]]", bare):
        return ""
    bare = re.sub(r"\{[^}]*\}", "*", bare)
    return max(re.findall(r"[^\0.^$*+?{}]{3,}(?![*?])", bare), key=len, default="")


@dataclass(frozen=True)
class LogFilter:
    """Which lines pass: of one rank, with or without a pattern."""

    rank: str = ""
    pattern: Pattern | None = None

    def passes(self, line: LogLine) -> bool:
        if self.rank and line.rank != self.rank:
            return False
        return self.pattern is None or self.pattern.hits(line)

    def hint(self) -> Hint | None:
        by_text = self.pattern.hint() if self.pattern is not None else None
        if not self.rank:
            return by_text
        signs = _signs(self.rank)
        if by_text is None:
            return lambda text: any(sign in text for sign in signs)
        return lambda text: any(sign in text for sign in signs) and by_text(text)


def _signs(rank: str) -> tuple[str, ...]:
    """What a line of this rank holds: "TP3", or NCCL's "[3]", or only its number."""
    token = rank.rsplit(" ", 1)[-1]
    number = token.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ_")
    return (token, f"[{number}]") if number != token else (token,)
