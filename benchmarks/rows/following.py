"""Following a log that grows, the whole dashboard beside ``lnav`` and ``less +F``, all on the same file at the same time."""

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
from benchmarks.registry import Group, Options, Round, Values, rows_of
from benchmarks.rows.watching import Crowd
from benchmarks.terminal import cpu_of

RATES = (1_000, 10_000, 20_000)
WINDOW_S = 6.0
#: a line that is not on the screen after this long is not counted as late but as never seen
LATE_S = 20.0
#: the writer writes this often
PIECE_S = 0.05


class Growing:
    """The log: written at a rate, each line another one."""

    def __init__(self, path: Path) -> None:
        self._path, self._written = path, 0

    def write(self, count: int) -> None:
        with self._path.open("a") as out:
            out.write(steady(count, self._written))
        self._written += count

    def mark(self, word: str) -> None:
        with self._path.open("a") as out:
            out.write(f"[2026-11-29 16:07:00 TP0] last {word}\n")


def follow(crowd: Crowd, log: Growing, rate: int, seconds: float) -> dict[str, Values]:
    """CPU seconds per 10 s of growth, until the last line is drawn; its lag in seconds."""
    before = {name: cpu_of(session.pid) for name, session in crowd.sessions.items()}
    began, done = time.monotonic(), 0
    while (t := time.monotonic() - began) < seconds:
        due = int(rate * t)
        log.write(due - done)
        done = due
        crowd.idle(PIECE_S)
        crowd.forget()
    word = f"m{time.monotonic_ns()}"
    log.mark(word)
    lags = _lags(crowd, word.encode())
    return {
        name: {"CPU s/10 s": (cpu_of(session.pid) - before[name]) / seconds * 10}
        | ({"lag s": lags[name]} if name in lags else {})
        for name, session in crowd.sessions.items()
    }


def _lags(crowd: Crowd, word: bytes) -> dict[str, float]:
    began, found = time.monotonic(), {}
    while len(found) < len(crowd.sessions) and time.monotonic() - began < LATE_S:
        crowd.idle(0.02)
        for name, session in crowd.sessions.items():
            if name not in found and word in session.seen:
                found[name] = time.monotonic() - began
    crowd.forget()
    return found


@contextmanager
def _followed() -> Iterator[tuple[Crowd, Growing]]:
    with tempfile.TemporaryDirectory(prefix="sgmon-bench-") as folder:
        path = Path(folder) / "server.log"
        path.write_text(START + READY + steady(2_000))
        with server.serving(threads=4, log=path) as target:
            commands = {
                "sgmon": [sys.executable, "-m", "tui_app.cli", "--pid", str(target.pid)],
                "lnav": peers.in_utf8(peers.find("lnav"), "-N", str(path)),
                "less": [peers.find("less"), "+F", str(path)],
            }
            with Crowd(commands) as crowd:
                crowd.settle(8.0, 3.0)
                yield crowd, Growing(path)


def at(rate: int) -> Callable[[Options], object]:
    @contextmanager
    def prepare(options: Options) -> Iterator[Round]:
        with _followed() as (crowd, log):
            yield lambda: follow(crowd, log, rate, 3.0 if options.quick else WINDOW_S)

    return prepare


GROUPS = tuple(
    Group(
        f"follow-{rate}",
        f"follow {rate:,} lines/s, the whole dashboard",
        rows_of(f"follow-{rate}", "sgmon/lnav, sgmon/less", "CPU s/10 s", "lag s"),
        at(rate),  # type: ignore[arg-type]
    )
    for rate in RATES
)
