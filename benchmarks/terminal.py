"""Runs a command under a pty and times what a person sees."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """first_s: until ``wanted`` was on screen (None: never); first_cpu_s: user + system until then. cpu_s: of the whole
    run. Both with children."""

    first_s: float | None
    first_cpu_s: float
    wall_s: float
    cpu_s: float
    output_bytes: int
    idle_cpu_s: float
    idle_bytes: int
    quit_s: float


Wanted = Callable[[bytearray], bool]
#: what programs ask a terminal, and what an xterm answers; lnav and less wait for it, we for each frame's
ANSWERS = {
    b"\x1b]11;?\x1b\\": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[?2026$p": b"\x1b[?2026;0$y",
    b"\x1b[?2048$p": b"\x1b[?2048;0$y",
}


def run(
    argv: Sequence[str],
    wanted: Wanted,
    *,
    settle_s: float = 0.0,
    idle_s: float = 0.0,
    keys: bytes = b"qq",
    columns: int = 120,
    rows: int = 40,
) -> Run:
    """Start ``argv``, wait until the output is ``wanted``, let it settle, stay ``idle_s``, press ``keys``, wait for the
    end (10 s). Idle CPU and bytes are those of ``idle_s`` alone."""
    start = time.monotonic()
    pid, master = _spawn(argv, columns, rows)
    seen = bytearray()
    first = _read_until(master, seen, start + 30, wanted)
    before_cpu, before_bytes = cpu_of(pid), len(seen)
    _read_until(master, seen, time.monotonic() + idle_s, None)
    idle_cpu, idle_bytes = cpu_of(pid) - before_cpu, len(seen) - before_bytes
    asked = time.monotonic()
    os.write(master, keys)
    status = _wait(pid, master, seen, asked + 10)
    ended = time.monotonic()
    os.close(master)
    cpu = status[1].ru_utime + status[1].ru_stime if status else 0.0
    return Run(
        None if first is None else first - start,
        before_cpu,
        ended - start,
        cpu,
        len(seen),
        idle_cpu,
        idle_bytes,
        ended - asked,
    )


@contextmanager
def as_installed() -> Iterator[None]:
    """Every program that is started has its byte code, as after an installation. With PYTHONDONTWRITEBYTECODE a source
    tree is compiled again at each start (0.2 s), its libraries are not."""
    kept = os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        try:
            yield
        finally:
            del os.environ["PYTHONPYCACHEPREFIX"]
            if kept is not None:
                os.environ["PYTHONDONTWRITEBYTECODE"] = kept


def _read_until(master: int, seen: bytearray, end: float, wanted: Wanted | None) -> float | None:
    while (left := end - time.monotonic()) > 0:
        if wanted is not None and wanted(seen):
            return time.monotonic()
        if not select.select([master], [], [], min(left, 0.05))[0]:
            continue
        try:
            take(master, seen)
        except OSError:
            return None
    return None


def take(master: int, seen: bytearray) -> int:
    """Read what is there into ``seen`` and answer the questions in it at once, as a terminal does; the number of bytes.

    Raises OSError when the program has ended. A program that waits for an answer would wait for its whole deadline."""
    before = len(seen)
    seen += os.read(master, 1 << 16)
    for question, answer in ANSWERS.items():
        begin = max(0, before - len(question) + 1)  # a question may come in two pieces
        if count := seen.count(question, begin):
            os.write(master, answer * count)
    return len(seen) - before


def _wait(pid: int, master: int, seen: bytearray, end: float):
    while time.monotonic() < end:
        got, _, usage = os.wait4(pid, os.WNOHANG)
        if got:
            return got, usage
        _read_until(master, seen, time.monotonic() + 0.02, None)
    os.kill(pid, 9)
    got, _, usage = os.wait4(pid, 0)
    return got, usage


def cpu_of(pid: int) -> float:
    """CPU seconds of a process with its ended threads, of its live descendants, and of those that were reaped."""
    total = 0.0
    for one in family_of(pid):
        try:
            with open(f"/proc/{one}/stat", "rb") as file:
                fields = file.read().rsplit(b")", 1)[1].split()
            total += sum(int(field) for field in fields[13:15]) / os.sysconf("SC_CLK_TCK")
            total += time.clock_gettime(_cpu_clock(one))
        except OSError:
            continue
    return total


def rss_of(pid: int) -> float:
    """Resident MiB of a process and its live descendants."""
    total = 0
    for one in family_of(pid):
        try:
            with open(f"/proc/{one}/statm", "rb") as file:
                total += int(file.read().split()[1])
        except OSError:
            continue
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def family_of(pid: int) -> list[int]:
    """A process and its live descendants."""
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{task}/children", "rb") as file:
                    todo += [int(word) for word in file.read().split()]
        except OSError:
            continue
    return found


def _cpu_clock(pid: int) -> int:
    """The clock that counts the CPU time of a process in ns (``clock_getcpuclockid``); stat counts in ticks of 10 ms."""
    return (~pid << 3) | 2


class Session:
    """A command under a pty, driven step by step."""

    def __init__(self, argv: Sequence[str], columns: int = 120, rows: int = 40) -> None:
        self.pid, self._master = _spawn(argv, columns, rows)
        self._seen = bytearray()
        self._ended = False

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._ended:
            self.kill()
        os.close(self._master)

    def forget(self) -> None:
        """What came so far counts no more."""
        self._seen.clear()

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def until(self, wanted: bytes, seconds: float) -> float | None:
        """When it had come; None: it did not."""
        return _read_until(self._master, self._seen, time.monotonic() + seconds, lambda seen: wanted in seen)

    @property
    def master(self) -> int:
        """The descriptor to wait on."""
        return self._master

    @property
    def seen(self) -> bytearray:
        """Everything that came since it was told to forget."""
        return self._seen

    def take(self) -> int:
        """Read what is there and answer the terminal's questions; the number of bytes. Never waits."""
        taken = 0
        while select.select([self._master], [], [], 0)[0]:
            try:
                taken += take(self._master, self._seen)
            except OSError:
                break
        return taken

    def kill(self) -> None:
        """End it without asking."""
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        self._ended = True

    def idle(self, seconds: float) -> None:
        _read_until(self._master, self._seen, time.monotonic() + seconds, None)

    def quit(self) -> float:
        """Press q twice and say how long the end took (10 s: it was killed)."""
        asked = time.monotonic()
        self.press(b"qq")
        _wait(self.pid, self._master, self._seen, asked + 10)
        self._ended = True
        return time.monotonic() - asked


def _spawn(argv: Sequence[str], columns: int, rows: int) -> tuple[int, int]:
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(TERM="tmux-256color", COLORTERM="", LINES=str(rows), COLUMNS=str(columns))
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.execvp(argv[0], list(argv))
    return pid, master
