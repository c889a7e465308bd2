"""sgmon in a real pty, its screen kept by pyte: what a person would see."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable

import pyte

#: seconds after which something that is awaited will not come, on a machine with ten times its load
LIMIT_S = 100.0


class Terminal:
    """A child on a pty of ``columns`` x ``rows``. ``lines()`` is the screen now; ``raw`` all that was written."""

    def __init__(self, *argv: str, columns: int = 120, rows: int = 40) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = bytearray()
        self.status: int | None = None
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            dropped = {"COLORTERM", "NO_COLOR", "SSH_CONNECTION", "TMUX", "COLUMNS", "LINES"}
            # An explicit environment: readline puts COLUMNS and LINES into the one that execv would hand on.
            env = {name: value for name, value in os.environ.items() if name not in dropped}
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            self.run([sys.executable, "-m", "tui_app.cli", *argv], env | {"TERM": "tmux-256color"})

    def run(self, argv: list[str], env: dict[str, str]) -> None:
        """In the child: becomes the program."""
        os.execve(argv[0], argv, env)

    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    def text(self) -> str:
        return "\n".join(self.lines())

    def until(self, done: Callable[[str], object], timeout_s: float = LIMIT_S) -> str:
        """Read on until ``done(text of the screen)``; returns the text."""
        end = time.monotonic() + timeout_s
        while not done(self.text()):
            assert time.monotonic() < end, f"not seen in {timeout_s} s; the screen is:\n{self.text()}"
            if not self._read(0.1):
                assert done(self.text()), f"ended; the screen is:\n{self.text()}"
        return self.text()

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, timeout_s: float = LIMIT_S) -> int:
        """Exit code, after reading to the end."""
        end = time.monotonic() + timeout_s
        while self.status is None:
            assert time.monotonic() < end, f"still running after {timeout_s} s:\n{self.text()}"
            self._read(0.05)
            got, status = os.waitpid(self.pid, os.WNOHANG)
            if got:
                self.status = os.waitstatus_to_exitcode(status)
        while self._read(0.05):
            pass
        return self.status

    def close(self) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.status = -9
        os.close(self.master)

    def _read(self, timeout_s: float) -> bool:
        if not select.select([self.master], [], [], timeout_s)[0]:
            return True
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
