"""On a real terminal: what a headless run cannot see, such as a view that stops being painted."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pyte
import pytest

from tests.logview.fakes import dated

ROOT = Path(__file__).parents[2]


class Terminal:
    """A program in a pty, its screen kept by pyte."""

    def __init__(self, argv: list[str], width: int, height: int) -> None:
        self.screen = pyte.Screen(width, height)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = bytearray()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            # An explicit environment: readline puts COLUMNS and LINES into the one that execv would hand on.
            own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
            env = {**own, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "SGMON_STRICT_PANELS": "1"}
            os.execve(sys.executable, [sys.executable, *argv], env)
        self.resize(width, height)

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.screen.resize(height, width)

    @property
    def text(self) -> str:
        return "\n".join(self.screen.display)

    def wait(self, words: str, seconds: float = 20.0) -> str:
        """Read until the words stand on the screen."""
        deadline = time.monotonic() + seconds
        while words not in self.text:
            assert time.monotonic() < deadline, f"no {words!r} on the screen:\n{self.text}"
            self.read(0.1)
        return self.text

    def read(self, seconds: float) -> None:
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return
            self.raw += data
            # pyte 0.8 takes the private "CSI > ... m/u" and "CSI ? ... $p" for colours and keys: leave them out
            self.stream.feed(_without_private(data))

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def close(self) -> None:
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(self.pid, sign)
            except ProcessLookupError:
                break
            deadline = time.monotonic() + 2
            while time.monotonic() < deadline:
                self.read(0.02)
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    os.close(self.fd)
                    return
        os.close(self.fd)


_PRIVATE = re.compile(rb"\x1b\[[<>=?][0-9;]*(?:\$p|[a-zA-Z])|\x1bP[^\x1b]*\x1b\\|\x1b_[^\x1b]*\x1b\\")


def _without_private(data: bytes) -> bytes:
    return _PRIVATE.sub(b"", data)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_text("".join(dated(n, f"words {n}", "TP0") for n in range(500)))
    return path


@pytest.fixture
def terminal(path: Path) -> Iterator[Terminal]:
    terminal = Terminal(["-m", "tests.logview.follow_app", str(path)], 80, 24)
    yield terminal
    terminal.close()


def append(path: Path, words: str, count: int) -> None:
    with path.open("a") as out:
        for n in range(count):
            out.write(dated(n, f"{words} {n}", f"TP{n % 2}"))


def test_the_screen_keeps_up_with_the_file(path: Path, terminal: Terminal) -> None:
    terminal.wait("words 499")
    for burst, count in enumerate((1, 30, 3000, 7, 20_000)):
        append(path, f"burst {burst} number", count)
        terminal.wait(f"burst {burst} number {count - 1}")
    terminal.press("k")
    terminal.wait("paused")
    append(path, "unseen", 40)
    assert "unseen" not in terminal.wait("▼ 40 new")
    terminal.press("G")
    terminal.wait("unseen 39")
    terminal.resize(120, 30)
    append(path, "after the resize", 3)
    terminal.wait("after the resize 2")
    terminal.wait("unseen 20")


def test_escapes_of_the_log_never_reach_the_terminal(path: Path, terminal: Terminal) -> None:
    terminal.wait("words 499")
    with path.open("ab") as out:
        out.write(b"evil \x1b]0;owned\x07 \x1b[41mred\x1b[0m \x9b41m \x1bPq#0\x1b\\ end\n" * 2)
    terminal.wait("evil")
    terminal.wait("end")
    assert b"owned" not in bytes(terminal.raw) and b"\x1b[41m" not in bytes(terminal.raw)
