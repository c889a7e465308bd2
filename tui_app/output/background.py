"""Whether the terminal is light: it is asked for its background (OSC 11) while the screen is being imported."""

from __future__ import annotations

import contextlib
import os
import re
import select
import sys
import termios
import time
import tty

#: behind the first question one that every terminal answers, so that one without OSC 11 is not waited for
_QUESTIONS = b"\x1b]11;?\x1b\\\x1b[c"
_COLOUR = re.compile(rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
_LAST_ANSWER = re.compile(rb"\x1b\[\?[0-9;]*c")
#: from the first question; the imports take longer than this on most machines
DEADLINE_S = 0.25


def is_light(answer: bytes) -> bool | None:
    """What an answer to OSC 11 says ("rgb:ffff/ffff/ffff"); None: nothing."""
    found = _COLOUR.search(answer)
    if found is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5


def light_by_environment(value: str) -> bool | None:
    """What ``COLORFGBG`` says ("0;15": black on white); None: nothing."""
    last = value.rpartition(";")[2]
    return None if not last.isdigit() else int(last) in (7, 15)


class BackgroundQuestion:
    """Asked when it is made; ``answer`` waits for the rest of the deadline. The terminal is left as it was."""

    def __init__(self) -> None:
        self._known = light_by_environment(os.environ.get("COLORFGBG", ""))
        self._mode: list[object] | None = None
        self._asked_t = time.monotonic()
        self.is_late = False  # the answer may still come
        if self._known is None and os.environ.get("TERM", "dumb") not in ("dumb", "linux", ""):
            self._ask()

    def _ask(self) -> None:
        try:
            self._mode = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin, termios.TCSANOW)
            os.write(sys.stderr.fileno(), _QUESTIONS)
        except (OSError, termios.error, ValueError):
            self._restore()

    def answer(self) -> bool | None:
        """Whether the terminal is light; None: not known."""
        if self._mode is None:
            return self._known
        data = b""
        try:
            while not _LAST_ANSWER.search(data):
                left = self._asked_t + DEADLINE_S - time.monotonic()
                if not select.select([sys.stdin], [], [], max(0.0, left))[0]:
                    self.is_late = True
                    break
                more = os.read(sys.stdin.fileno(), 1024)
                if not more:  # the terminal was closed; who reads it next ends
                    break
                data += more
        except OSError:
            pass
        self._restore()
        return is_light(data)

    def _restore(self) -> None:
        if self._mode is not None:
            with contextlib.suppress(termios.error):  # it was closed
                termios.tcsetattr(sys.stdin, termios.TCSANOW, self._mode)  # type: ignore[arg-type]
            self._mode = None
