"""Opening a big log: until its last line is on the screen, and the CPU until the program has come to rest (indexed)."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import peers, server
from benchmarks.fold import READY, START
from benchmarks.log import steady
from benchmarks.registry import Group, Options, Round, Values, in_turns, rows_of
from benchmarks.terminal import Session, cpu_of

MARK = "Qx7Zk"
#: bytes of the log, and of the one of a quick run
SIZE, QUICK_SIZE = 1_000_000_000, 50_000_000
FIRST_S, REST_S = 120.0, 300.0


def generate(path: Path, size: int) -> None:
    """A log of so many bytes: a start, the ready line, batches; the last line holds MARK."""
    part = steady(9973 * 3).encode()
    with path.open("wb") as out:
        out.write((START + READY).encode())
        for _ in range(max(1, round(size / len(part)))):
            out.write(part)
        out.write(f"[2026-11-29 16:06:00 TP0] the end {MARK}\n".encode())


@contextmanager
def log(options: Options) -> Iterator[Path]:
    """The big log; its pages are in the cache."""
    with tempfile.TemporaryDirectory(prefix="sgmon-bench-") as folder:
        path = Path(folder) / "server.log"
        generate(path, QUICK_SIZE if options.quick else SIZE)
        yield path


def viewer(argv: list[str]) -> Callable[[], Values]:
    """Open, wait for the last line, wait for rest."""

    def measure() -> Values:
        began = time.monotonic()
        with Session(argv, 160, 50) as session:
            first_s = _until(session, MARK.encode(), FIRST_S)
            if first_s is None:
                return {}
            first_cpu_s = cpu_of(session.pid)
            rest_s, cpu_s = _rest(session)
            return {"s": first_s - began, "CPU s": first_cpu_s, "s at rest": rest_s - began, "CPU s at rest": cpu_s}

    return measure


def _until(session: Session, wanted: bytes, seconds: float) -> float | None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        session.take()
        if wanted in session.seen:
            return time.monotonic()
        del session.seen[: -1 << 16]
        time.sleep(0.005)
    return None


def _rest(session: Session) -> tuple[float, float]:
    """When it came to rest (two half seconds below a tenth of a core), and its CPU seconds then."""
    quiet, before, end = 0, cpu_of(session.pid), time.monotonic() + REST_S
    rest_s = time.monotonic()
    while quiet < 2 and time.monotonic() < end:
        began = time.monotonic()
        while time.monotonic() < began + 0.5:
            session.take()
            session.forget()
            time.sleep(0.02)
        now = cpu_of(session.pid)
        quiet = quiet + 1 if now - before < 0.05 else 0
        if not quiet:
            rest_s = time.monotonic()
        before = now
    return rest_s, before


@contextmanager
def prepare(options: Options) -> Iterator[Round]:
    with log(options) as path, server.serving(threads=4, log=path) as target:
        ours = [sys.executable, "-m", "tui_app.cli", "--pid", str(target.pid)]
        yield in_turns(
            {
                "sgmon": viewer(ours),
                "lnav": viewer(peers.in_utf8(peers.find("lnav"), "-N", str(path))),
                "tl": viewer([peers.find("tl"), str(path)]),
                "less": viewer([peers.find("less"), "+G", str(path)]),
            }
        )


ROWS = rows_of("open", "sgmon/lnav, sgmon/tl, sgmon/less", "s", "CPU s at rest")
GROUPS = (Group("open", "open and index 1 GB, the whole dashboard", ROWS, prepare),)
