"""In a real terminal (a pty): signals restore it, quitting leaves two lines, a terminal that hangs does not hold us."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ui.repeating import RepeatingScreen, RepeatingStream
from tests.waiting import eventually

ROWS, COLUMNS = 24, 80


class Terminal:
    """A child in a pty, and what a terminal makes of its output."""

    def __init__(self, *program: str) -> None:
        self.screen = RepeatingScreen(COLUMNS, ROWS)
        self.stream = RepeatingStream(self.screen)
        self.output = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
            env = {**own, "TERM": "xterm-256color", "TEXTUAL_ANIMATIONS": "none"}
            os.execve(sys.executable, [sys.executable, "-m", *program], env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.mode = termios.tcgetattr(self.fd)

    def read_until(self, wanted: bytes, limit_s: float = 40.0) -> None:
        deadline = time.monotonic() + limit_s
        while wanted not in self.output:
            assert time.monotonic() < deadline, f"no {wanted!r} in {self.output[-2000:]!r}"
            self.read_some()

    def read_some(self) -> bool:
        ready, _, _ = select.select([self.fd], [], [], 0.2)
        if not ready:
            return True
        try:
            chunk = os.read(self.fd, 65536)
        except OSError:
            return False
        self.output += chunk
        self.stream.feed(chunk)
        for answer in self.screen.answers:  # where the cursor is, when it has painted
            os.write(self.fd, answer.encode())
        self.screen.answers.clear()
        return bool(chunk)

    def drain(self, limit_s: float = 20.0) -> None:
        deadline = time.monotonic() + limit_s
        while self.read_some():
            assert time.monotonic() < deadline, "the process does not end"

    def end(self) -> int:
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with closing(Terminal("tests.ui.preview", "stuck")) as child:
        yield child


@contextmanager
def closing(child: Terminal) -> Iterator[Terminal]:
    yield child
    try:
        os.kill(child.pid, signal.SIGKILL)
        os.waitpid(child.pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
    os.close(child.fd)


def is_restored(output: bytes) -> bool:
    """Left the alternate screen, and the cursor is shown again."""
    return output.rfind(b"\x1b[?1049l") > output.rfind(b"\x1b[?1049h") and output.rfind(b"\x1b[?25h") > output.rfind(
        b"\x1b[?25l"
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_restore_the_terminal(terminal: Terminal, number: signal.Signals) -> None:
    terminal.read_until(b"STALLED")
    os.kill(terminal.pid, number)
    terminal.drain()
    assert terminal.end() == 128 + number
    assert is_restored(terminal.output)


@pytest.mark.slow
def test_quit_leaves_two_lines(terminal: Terminal) -> None:
    terminal.read_until(b"STALLED")
    os.write(terminal.fd, b"qq")
    terminal.drain()
    assert terminal.end() == 0
    assert is_restored(terminal.output)
    text = " ".join(row.strip() for row in terminal.screen.display)
    assert "sgmon: stalled, silent 8m00s" in text
    assert "next: check the NFS mount" in text


@pytest.mark.slow
def test_the_screen_is_whole_again_after_ctrl_z_and_fg(terminal: Terminal) -> None:
    terminal.read_until(b"STALLED")
    os.write(terminal.fd, b"\x1a")
    while os.waitpid(terminal.pid, os.WNOHANG | os.WUNTRACED) == (0, 0):
        terminal.read_some()
    terminal.read_some()
    terminal.output = b""
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.screen.reset()
    deadline = time.monotonic() + 40
    while "quit" not in terminal.screen.display[-1] or "STALLED" not in terminal.screen.display[0]:
        assert time.monotonic() < deadline, terminal.screen.display
        terminal.read_some()
    assert all(row.strip() for row in terminal.screen.display)


@pytest.mark.slow
def test_a_terminal_that_repeats_characters_is_recognized_and_gets_rules_as_one(terminal: Terminal) -> None:
    terminal.read_until(b"STALLED")
    os.write(terminal.fd, b"v")
    terminal.read_until(b"what was not seen")
    os.write(terminal.fd, b"q")
    terminal.read_until("─\x1b[".encode())  # its second overview: the answer has come by then
    assert re.search("─\x1b\\[\\d+b".encode(), terminal.output)
    deadline = time.monotonic() + 40
    while not any("─" * 20 in row for row in terminal.screen.display):
        assert time.monotonic() < deadline, terminal.screen.display
        terminal.read_some()


@pytest.mark.slow
def test_without_a_terminal_one_sentence_and_exit_code_2() -> None:
    command = f"exec {sys.executable} -m tui_app.cli <&-"
    run = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 2
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_terminal_that_takes_no_output_does_not_hold_us(terminal: Terminal) -> None:
    terminal.read_until(b"STALLED")
    deadline = time.monotonic() + 3  # nobody reads: the pty fills, the loop blocks
    while time.monotonic() < deadline:
        os.write(terminal.fd, b"vq")
        select.select([], [], [], 0.02)
    os.kill(terminal.pid, signal.SIGTERM)
    asked = time.monotonic()
    while os.waitpid(terminal.pid, os.WNOHANG) == (0, 0):
        assert time.monotonic() - asked < 15, "still there"
        select.select([], [], [], 0.05)
    assert time.monotonic() - asked < 8


@pytest.mark.slow
def test_frames_for_a_terminal_that_does_not_read_are_dropped_and_not_queued(terminal: Terminal) -> None:
    terminal.read_until(b"STALLED")
    for _ in range(60):  # each key changes the page: 120 pages of 3 KB and more, were they queued
        os.write(terminal.fd, b"vq")
        select.select([], [], [], 0.05)
    terminal.output = b""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        terminal.read_some()
    assert len(terminal.output) < 120 * 1_000  # what the pty holds, and pages of keys that were read late
    deadline = time.monotonic() + 40
    while not any("STALLED" in row for row in terminal.screen.display):
        assert time.monotonic() < deadline, terminal.screen.display
        terminal.read_some()


@pytest.mark.slow
def test_after_a_storm_of_resizes_the_screen_has_the_last_size(terminal: Terminal) -> None:
    terminal.read_until(b"STALLED")
    for step in range(40):
        fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 10 + step, 40 + 2 * step, 0, 0))
        terminal.read_some()
    terminal.screen.resize(30, 100)
    terminal.output = b""
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    deadline = time.monotonic() + 40
    while "quit" not in terminal.screen.display[29] or "STALLED" not in terminal.screen.display[0]:
        assert time.monotonic() < deadline, terminal.screen.display
        terminal.read_some()


@pytest.mark.slow
def test_of_two_resizes_the_second_stays_though_it_comes_while_the_first_is_asked_for(
    tmp_path: Path,
) -> None:
    asked = tmp_path / "asked"
    with closing(Terminal("tests.ui.slow_size", "stuck", str(asked))) as terminal:
        terminal.read_until(b"STALLED")
        fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 49, 118, 0, 0))
        eventually(asked.exists)
        terminal.screen.resize(30, 100)
        fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        deadline = time.monotonic() + 40
        while "quit" not in terminal.screen.display[29] or "STALLED" not in terminal.screen.display[0]:
            assert time.monotonic() < deadline, terminal.screen.display
            terminal.read_some()


@pytest.mark.slow
def test_a_terminal_that_takes_no_output_does_not_stop_the_collection(tmp_path: Path) -> None:
    published = tmp_path / "published"
    with closing(Terminal("tests.ui.collecting", str(published))) as terminal:
        terminal.read_until(b"TP0", 100)
        for _ in range(200):  # nobody reads from here on: pages fill the pty, and the loop of the screen stands
            os.write(terminal.fd, b"vq")
            select.select([], [], [], 0.01)
        before = published.stat().st_size
        deadline = time.monotonic() + 60
        while published.stat().st_size < before + 12:  # at most four a second, one where only the time moves
            assert time.monotonic() < deadline, "the engine waits for the terminal"
            select.select([], [], [], 0.1)
        os.kill(terminal.pid, signal.SIGTERM)
        terminal.drain()
