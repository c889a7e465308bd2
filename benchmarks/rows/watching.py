"""A quiet watch: eight GPUs of the NVML double, eight workers of 200 threads; sgmon, nvitop and btop at 1 and 2 s.

All programs run at the same time. The count begins when every one of them has come to rest: they are started, then
they get SETTLE_S, and then windows are looked at until no program's CPU falls any more.
"""

from __future__ import annotations

import select
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks import peers, server
from benchmarks.registry import Group, Options, Round, Values, rows_of
from benchmarks.terminal import Session, cpu_of, rss_of

SETTLE_S = 40.0
WINDOW_S = 20.0
#: windows that are thrown away at most, while a program still falls by more than a quarter
SETTLING = 4


class Crowd:
    """Programs that run side by side in terminals of their own."""

    def __init__(self, commands: dict[str, list[str]], columns: int = 160, rows: int = 50) -> None:
        self.sessions = {name: Session(argv, columns, rows) for name, argv in commands.items()}

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *error: object) -> None:
        for session in self.sessions.values():
            session.__exit__(*error)

    def idle(self, seconds: float) -> dict[str, int]:
        """Let them run, reading what they draw; bytes by program."""
        taken = dict.fromkeys(self.sessions, 0)
        masters = {session.master: name for name, session in self.sessions.items()}
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for master in select.select(list(masters), [], [], min(left, 0.5))[0]:
                name = masters[master]
                taken[name] += self.sessions[name].take()
            time.sleep(min(max(0.0, end - time.monotonic()), 0.02))
        return taken

    def forget(self) -> None:
        for session in self.sessions.values():
            session.forget()

    def window(self, seconds: float) -> dict[str, Values]:
        """CPU seconds a minute, bytes a second, MiB of each over so many seconds."""
        before = {name: cpu_of(session.pid) for name, session in self.sessions.items()}
        began = time.monotonic()
        taken = self.idle(seconds)
        took = time.monotonic() - began
        self.forget()
        return {
            name: {
                "CPU s/min": (cpu_of(session.pid) - before[name]) / took * 60,
                "bytes/s": taken[name] / took,
                "MiB": rss_of(session.pid),
            }
            for name, session in self.sessions.items()
        }

    def settle(self, seconds: float, window_s: float) -> None:
        """Until no program needs less than before: starts, first looks and first screens are over."""
        self.idle(seconds)
        last = self.window(window_s)
        for _ in range(SETTLING):
            now = self.window(window_s)
            if all(now[name]["CPU s/min"] > 0.75 * last[name]["CPU s/min"] for name in now):
                return
            last = now


@contextmanager
def prepare(options: Options) -> Iterator[Round]:
    with ExitStack() as stack:
        target = stack.enter_context(server.serving(ranks=8, threads=200))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nvml = stack.enter_context(server.gpus(folder, target.workers))
        commands: dict[str, list[str]] = {}
        for interval in ("1", "2"):
            commands[f"sgmon {interval} s"] = [
                *(*nvml, sys.executable, "-m", "tui_app.cli", "--pid", str(target.pid), "--interval", interval)
            ]
            commands[f"nvitop {interval} s"] = [*nvml, peers.find("nvitop"), "--interval", interval]
            commands[f"btop {interval} s"] = _btop(folder, interval)
        crowd = stack.enter_context(Crowd(commands))
        window_s = 8.0 if options.quick else WINDOW_S
        crowd.settle(10.0 if options.quick else SETTLE_S, window_s)
        yield lambda: crowd.window(window_s)


def _btop(folder: Path, interval: str) -> list[str]:
    home = folder / f"btop-{interval}"
    (home / "btop").mkdir(parents=True)
    (home / "btop" / "btop.conf").write_text(f"update_ms={interval}000\n")
    return peers.in_utf8(f"XDG_CONFIG_HOME={home}", peers.find("btop"), "--utf-force")


PAIRS = "sgmon 1 s/nvitop 1 s, sgmon 2 s/nvitop 2 s, sgmon 1 s/btop 1 s, sgmon 2 s/btop 2 s"
ROWS = (
    *rows_of("idle", PAIRS, "CPU s/min", "bytes/s"),
    *rows_of("idle", "sgmon 1 s/nvitop 1 s, sgmon 1 s/btop 1 s", "MiB"),
    *rows_of("idle", "sgmon 2 s/sgmon 1 s", "CPU s/min"),
)
GROUPS = (Group("idle", "a quiet watch, 8 GPUs, 8 workers of 200 threads", ROWS, prepare, warm=False),)
