"""Starts on a simulated TP8 server: the first frame, the first one with ranks and a verdict, one look without a screen."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks import peers, server
from benchmarks.registry import Group, Options, Round, Values, in_turns, rows_of
from benchmarks.start import HELLO, VERDICTS
from benchmarks.terminal import Wanted, as_installed, run

PYTHON = sys.executable


@contextmanager
def prepare(options: Options) -> Iterator[Round]:
    with ExitStack() as stack:
        stack.enter_context(as_installed())
        target = stack.enter_context(server.serving(threads=4))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nvml = stack.enter_context(server.gpus(folder, target.workers))
        pid = str(target.pid)
        ours = [*nvml, PYTHON, "-m", "tui_app.cli"]
        yield in_turns(
            {
                "hello": first([PYTHON, "-c", HELLO], lambda seen: b"hello-on-screen" in seen),
                "frame": first([*ours, "--pid", pid], lambda seen: b"WAITING" in seen),
                "ranks": first([*ours, "--pid", pid], ranks_are_shown),
                "nvitop": first([*nvml, peers.find("nvitop")], lambda seen: str(target.workers[7]).encode() in seen),
                "status": once([*ours, "status", "--json", "--pid", pid]),
            }
        )


def ranks_are_shown(seen: bytearray) -> bool:
    """A row of a rank, and a verdict other than the first one."""
    return b"TP0" in seen and any(word in seen for word in VERDICTS)


def first(argv: list[str], wanted: Wanted) -> Callable[[], Values]:
    """Seconds and CPU seconds until ``wanted`` is on the screen."""

    def measure() -> Values:
        seen = run(argv, wanted)
        return {} if seen.first_s is None else {"s": seen.first_s, "CPU s": seen.first_cpu_s}

    return measure


def once(argv: list[str], codes: tuple[int, ...] = (0, 3, 4)) -> Callable[[], Values]:
    """Seconds and CPU seconds of a command from its start to its end, children included. Its output goes into a pipe:
    grep stops at the first hit when it writes to /dev/null."""

    def measure() -> Values:
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {"s": took, "CPU s": cpu} if done.returncode in codes else {}

    return measure


ROWS = rows_of("start", "frame/hello, frame/nvitop, ranks/hello, ranks/nvitop, status/hello", "CPU s", "s")
GROUPS = (Group("start", "start, TP8", ROWS, prepare, rounds=7, quick_rounds=2),)
