"""Secrets out of the text of one log that comes in pieces, cut anywhere. Pure, with memory of the open line.

A server writes few kinds of lines, which differ in their digits: of a line without its digits (its shape) it is known
whether a secret may be in it.
"""

from __future__ import annotations

from sgmon.patterns import regex
from sgmon.text import Look, look_at_shape, mask, may_have_secrets, without_escapes

#: of a line that never ends so much is remembered
_LINE_LIMIT = 4096
#: a private key that never ends is let go after so many characters
_KEY_LIMIT = 1 << 16
_LINE_ENDS = regex(r"(?<=[\r\n])")
_KEY_BEGINS = regex(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_KEY_END = "-----END "
_DIGITS = b"0123456789"
_TO_ZERO = bytes.maketrans(_DIGITS, b"0" * 10)
#: a number of so many digits is no count of tokens
_LONG = b"0" * 10
#: shapes that are known at most, and the longest: 2 MB
_KEPT, _LONGEST = 4_096, 500


class LogMask:
    """Masks as ``sgmon.text.mask`` does, line by line. Of private keys only the first and the last line stay."""

    def __init__(self) -> None:
        self._line = ""  # the last line as far as it has come
        self._key = 0  # characters of the private key that it is in; 0: in none
        self._known: dict[bytes, Look] = {}  # by shape

    def masked(self, text: str, *, fresh: bool = False) -> str:
        """The next piece, in as many lines as before. ``fresh``: it begins another file. What an earlier piece has
        begun (a name, a value) counts; what it has given out already is not given out again."""
        if fresh:
            self._line, self._key = "", 0
        before, _ = _render(self._line, self._key)
        if not self._key and before == self._line and not self._may_have_secrets(self._line + text):
            self._line = _LINE_ENDS.split((self._line + text)[-_LINE_LIMIT:])[-1]
            return text
        lines = _LINE_ENDS.split(self._line + text)
        parts = []
        for line in lines[:-1]:
            part, self._key = _render(line, self._key)
            parts.append(part)
        parts.append(_render(lines[-1], self._key)[0])
        self._line = lines[-1][-_LINE_LIMIT:]
        whole = "".join(parts)
        return whole[len(before) :] if whole.startswith(before) else mask(text)

    def _may_have_secrets(self, text: str) -> bool:
        """As ``sgmon.text.may_have_secrets``, which is asked where shapes do not tell."""
        data = text.encode("utf-8", "surrogatepass")
        looks = set(map(self._look, set(data.translate(None, _DIGITS).split(b"\n"))))
        if Look.MAYBE in looks:
            return True
        return Look.COUNT in looks and _LONG in data.translate(_TO_ZERO) and may_have_secrets(text)

    def _look(self, shape: bytes) -> Look:
        look = self._known.get(shape)
        if look is None:
            look = look_at_shape(shape.decode("utf-8", "surrogatepass"))
            if len(self._known) >= _KEPT:
                self._known.clear()
            if len(shape) <= _LONGEST:
                self._known[shape] = look
        return look


def _coloured(line: str) -> str:
    """A line with escape sequences masked: without them where one stands in a secret or before it."""
    bare = without_escapes(line)
    masked = mask(bare)
    return masked if masked != bare else mask(line)


def _render(line: str, key: int) -> tuple[str, int]:
    """One line masked, and how far into a private key its end is."""
    if not key and "-----BEGIN " not in line:
        return _coloured(line) if "\x1b" in line else mask(line), 0
    begin = None if key else _KEY_BEGINS.search(line)
    if not key and begin is None:
        return mask(line), 0
    head = mask(line[: begin.start()]) + begin[0] if begin else ""
    _, mark, rest = line[begin.end() if begin else 0 :].partition(_KEY_END)
    if mark:
        return head + mark + mask(rest), 0
    key += len(line)
    ending = line[len(line.rstrip("\r\n")) :]
    return head + ending, key if key < _KEY_LIMIT else 0
