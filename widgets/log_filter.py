"""What to look for in the log: text or regular expression, found out from the pattern itself."""

from __future__ import annotations

import re
import warnings

from msgspec import Struct

from sgmon.model import LogLine
from sgmon.text import MASK, mask
from widgets.log_text import Hint

_ESCAPED = re.compile(r"\\[^*W]")
_STARS = re.compile(r"\\[*W]|\[\^|\[[^\]]*\*")
#: characters of a line that are looked at
LONGEST = 4_000

# Signs that somebody means a regular expression. A lone ".", "[" or "(" is text: "[TP3]", "f(x)", "0.5.23".
_REGEX = re.compile(r"\.[*+?]|\\[dwsbDWSB.]|\||^\^|\$$|\[[^\]]+\][*+?{]|\(\?|\)[*+?]|\w[*+]")


class Pattern(Struct, frozen=True):
    """One search. ``inverse`` asks for the lines without it."""

    text: str
    regex: re.Pattern[str]
    is_regex: bool
    inverse: bool = False

    def hits(self, line: LogLine) -> bool:
        return (self.regex.search(line.text[:LONGEST]) is not None) != self.inverse

    def hint(self) -> Hint:
        """A quick look that misses no line: at a piece of text for a literal that each match holds, at one line for
        all of the pattern."""
        literals, line = self._literals(), self._line_hint()
        if not literals:
            return line
        if self.regex.flags & re.IGNORECASE:
            return lambda text: _any_in(literals, text.lower()) and line(text)
        return lambda text: _any_in(literals, text) and line(text)

    def _literals(self) -> tuple[str, ...]:
        if self.inverse or _is_anchored(self.text, self.is_regex):
            return ()
        literals = _needed(self.text) if self.is_regex else (self.text,)
        # lower() and the matching of re differ outside ASCII
        return literals if "".join(literals).isascii() or not self.regex.flags & re.IGNORECASE else ()

    def _line_hint(self) -> Hint:
        """For one line, if it will be shown as it stands in the file; what else there is passes. An expression never
        gets a long text: it may need a time that grows with its square, or worse."""
        search, inverse = self.regex.search, self.inverse
        anchored = inverse or _is_anchored(self.text, self.is_regex)
        if search(MASK) or (_STARS.search(_ESCAPED.sub("", self.text)) if self.is_regex else "*" in self.text):
            return lambda text: True  # it may be looking for what masks a secret

        def passes(text: str) -> bool:
            if "\n" in text or len(text) > LONGEST or not text.isprintable() or (anchored and "[20" in text[1:]):
                return True
            if inverse:
                return search(text) is None or mask(text) != text
            return search(text) is not None

        return passes

    @property
    def is_taken_literally(self) -> bool:
        """Whether it was typed as an expression and is none, so that its text is looked for."""
        return not self.is_regex and bool(_REGEX.search(self.text))

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


def _is_anchored(pattern: str, is_regex: bool) -> bool:
    """Whether a match depends on what stands around it."""
    return is_regex and re.search(r"[\^$]|\\[AZ]|\(\?|[*+?}]\+", pattern) is not None


def _needed(pattern: str) -> tuple[str, ...]:
    """Texts of which every match of a regular expression holds one, as long as may be; () when that is not plain."""
    bare = re.sub(r"\\.|\[[^\]]*\]", "\0", pattern)
    if re.search(r"[()\[\]]", bare):
        return ()
    bare = re.sub(r"\{[^}]*\}", "*", bare)
    branches = [re.findall(r"[^\0.^$*+?{}]{3,}(?![*?])", branch) for branch in bare.split("|")]
    return tuple(max(texts, key=len) for texts in branches) if all(branches) else ()


def _any_in(literals: tuple[str, ...], text: str) -> bool:
    return any(literal in text for literal in literals)


class LogFilter(Struct, frozen=True):
    """Which lines pass: of one rank, of one node, with or without a pattern."""

    rank: str = ""
    pattern: Pattern | None = None
    node: str = ""

    def passes(self, line: LogLine) -> bool:
        if (self.rank and line.rank != self.rank) or (self.node and line.node != self.node):
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
