"""Starts the server in name only, and reads it with the probes."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sgmon.collect.probes.base import Clock, Watched
from sgmon.collect.probes.procs import ProcsProbe
from sgmon.collect.probes.server import ServerProbe
from sgmon.model import Process, ProcsReading, Role
from sgmon.settings import Settings

HERE = Path(__file__).parent / "server"
DEADLINE_S = 30.0


class Tree:
    """A running tree: the pid that each title has, and readings of it."""

    def __init__(self, launcher: subprocess.Popen[bytes], pids: dict[str, int]) -> None:
        self.launcher = launcher
        self.pids = pids
        self.watched = Watched(Settings(pid=launcher.pid), Clock())
        self.server_probe = ServerProbe(self.watched)
        self.procs_probe = ProcsProbe(self.watched)
        self.server_probe.read()

    def read(self) -> ProcsReading:
        reading = self.procs_probe.read()
        assert reading is not None
        return reading

    def rank(self, rank: str) -> Process:
        return next(p for p in self.read().processes if p.rank == rank and p.role in (Role.WORKER, "importing"))

    def needs_calls(self) -> None:
        """Skip the test where the kernel hides blocked calls even of our own descendants (ptrace_scope 2 and 3)."""
        hidden = [gap.why for p in self.read().processes for gap in p.missing if gap.signal == "syscall"]
        if hidden:
            pytest.skip(hidden[0])

    def until(self, rank: str, true: Callable[[Process], object]) -> Process:
        """The first reading of this rank for which ``true`` holds; the last one at the deadline."""
        end = time.monotonic() + DEADLINE_S
        while True:
            seen = self.rank(rank)
            if true(seen) or time.monotonic() > end:
                return seen
            select.select([], [], [], 0.02)


@contextmanager
def running(folder: Path, *words: str, processes: int) -> Iterator[Tree]:
    """``processes``: how many say that they stand. The tree is killed at the end."""
    fifo = folder / "ready"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDWR)  # read and write: it never ends while no writer is there
    env = {**os.environ, "SITUATION_FIFO": str(fifo), "PYTHONPATH": str(HERE)}
    log = (folder / "server.log").open("wb")
    launcher = subprocess.Popen(
        [sys.executable, "-m", "sglang.launch_server", *words],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        yield Tree(launcher, _stand(reader, processes, folder))
    finally:
        with suppress(ProcessLookupError):  # the test has ended all of them
            os.killpg(launcher.pid, signal.SIGKILL)
        launcher.wait()
        os.close(reader)
        log.close()


def _stand(reader: int, processes: int, folder: Path) -> dict[str, int]:
    text = ""
    end = time.monotonic() + DEADLINE_S
    while text.count("\n") < processes:
        ready, _, _ = select.select([reader], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise AssertionError(f"only {text!r}; log: {(folder / 'server.log').read_text()[-2000:]}")
        text += os.read(reader, 4096).decode()
    return {title: int(pid) for pid, title in (line.split(" ", 1) for line in text.splitlines())}
