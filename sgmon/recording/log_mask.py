"""Secrets out of the text of one log that comes in pieces, cut anywhere. Pure, with memory of the open line."""

from __future__ import annotations

import re

from sgmon.text import mask, may_have_secrets

#: of a line that never ends so much is remembered
_LINE_LIMIT = 4096
#: a private key that never ends is let go after so many characters
_KEY_LIMIT = 1 << 16
_LINE_ENDS = re.compile(r"(?<=[\r\n])")
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_KEY_END = "-----END "


class LogMask:
    """Masks as ``sgmon.text.mask`` does, line by line. Of private keys only the first and the last line stay."""

    def __init__(self) -> None:
        self._line = ""  # the last line as far as it has come
        self._key = 0  # characters of the private key that it is in; 0: in none

    def masked(self, text: str, *, fresh: bool = False) -> str:
        """The next piece, in as many lines as before. ``fresh``: it begins another file. What an earlier piece has
        begun (a name, a value) counts; what it has given out already is not given out again."""
        if fresh:
            self._line, self._key = "", 0
        before, _ = _render(self._line, self._key)
        if not self._key and before == self._line and not may_have_secrets(self._line + text):
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


def _render(line: str, key: int) -> tuple[str, int]:
    """One line masked, and how far into a private key its end is."""
    if not key and "-----BEGIN " not in line:
        return mask(line), 0
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
