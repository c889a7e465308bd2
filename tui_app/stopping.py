"""Ending under all circumstances: a watchdog for a terminal that hangs."""

from __future__ import annotations

import contextlib
import os
import sys
import termios
import threading

GRACE_S = 3.0
#: leave the alternate screen, show the cursor, mouse and paste modes off
_RESTORE = b"\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[<u\r\n"


class Watchdog:
    """Once a stop was asked for, the process ends within ``GRACE_S``, also when the terminal takes no more output."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._armed = threading.Lock()
        self._saved = _terminal_mode()

    def arm(self, return_code: int) -> None:
        """A stop was asked for: the time runs."""
        if self._armed.acquire(blocking=False):
            threading.Thread(target=self._wait, args=(return_code,), name="stop-watchdog", daemon=True).start()

    def disarm(self) -> None:
        """The screen has ended by itself."""
        self._ended.set()

    def _wait(self, return_code: int) -> None:
        if self._ended.wait(GRACE_S):
            return
        _restore_terminal(self._saved)
        os._exit(return_code or 1)


def _terminal_mode() -> list[object] | None:
    try:
        return termios.tcgetattr(sys.__stdin__.fileno())  # type: ignore[union-attr]
    except (termios.error, OSError, ValueError, AttributeError):
        return None


def _restore_terminal(saved: list[object] | None) -> None:
    """Best effort, without waiting: a terminal that takes nothing must not hold us."""
    if saved is not None:
        with contextlib.suppress(termios.error, OSError, ValueError, AttributeError):
            termios.tcsetattr(sys.__stdin__.fileno(), termios.TCSANOW, saved)  # type: ignore[union-attr, arg-type]
    with contextlib.suppress(OSError, ValueError, AttributeError):
        fd = sys.__stderr__.fileno()  # type: ignore[union-attr]
        os.set_blocking(fd, False)
        os.write(fd, _RESTORE)
