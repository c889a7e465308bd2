"""Real processes that sleep: what only their own threads change is not read again until one of them has run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sgmon.collect.probes import worker as worker_module
from sgmon.collect.probes.base import Watched
from sgmon.collect.probes.procs import ProcsProbe
from sgmon.model import Process, Server, ServerArgs
from sgmon.proc import counters, stat
from sgmon.settings import Settings
from tests.proc.test_procs_probe import Clock
from tests.waiting import eventually

#: twenty threads that sleep; a line on stdin adds one
SLEEPER = """
import sys, threading
def add():
    threading.Thread(target=threading.Event().wait, daemon=True).start()
for _ in range(20):
    add()
print("here", flush=True)
for line in sys.stdin:
    add()
    print("here", flush=True)
"""


class Sleeper:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SLEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.wait()
        self.pid = self.process.pid
        self.clock = Clock()
        watched = Watched(Settings(), self.clock)
        watched.server = Server(self.pid, stat.read("/proc", self.pid).start_ticks, args=ServerArgs())
        self.probe = ProcsProbe(watched)

    def wait(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "here\n"

    def run(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("more\n")
        self.process.stdin.flush()
        self.wait()
        eventually(lambda: stat.read("/proc", self.pid).state == "S")

    def read(self, after_s: float = 1.0) -> Process:
        self.clock.t += after_s
        reading = self.probe.read()
        assert reading is not None
        return next(one for one in reading.processes if one.pid == self.pid)


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    if counters.ran_ns("/proc", os.getpid()) is None:
        pytest.skip("this kernel's CPU clock counts in steps")
    made = Sleeper()
    yield made
    made.probe.close()
    made.process.kill()
    made.process.communicate()


def test_threads_of_a_process_that_has_not_run_are_not_read_again(
    sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    eventually(lambda: stat.read("/proc", sleeper.pid).state == "S")
    looks: list[int] = []
    threads = counters.threads
    monkeypatch.setattr(
        counters, "threads", lambda root, pid, *more: (looks.append(pid), threads(root, pid, *more))[1]
    )
    first = sleeper.read()
    assert dict(first.thread_states) == {"S": 21}
    eventually(lambda: (sleeper.read(6.0), len(looks) >= 2)[1])  # where each of them sleeps is read once
    had = len(looks)
    for _ in range(5):
        assert sleeper.read(6.0).thread_states == first.thread_states
    assert len(looks) == had
    sleeper.run()
    eventually(lambda: dict(sleeper.read(6.0).thread_states) == {"S": 22})
    assert len(looks) > had


def test_a_stop_and_an_end_are_seen_at_once_and_other_facts_within_seconds(
    sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    eventually(lambda: sleeper.read(6.0).state == "S")
    sleeper.read()
    reads: list[int] = []
    read = worker_module.status.read
    monkeypatch.setattr(worker_module.status, "read", lambda root, pid: (reads.append(pid), read(root, pid))[1])
    for _ in range(4):
        sleeper.read()
    assert len(reads) <= 1
    sleeper.read(worker_module.REST_S)
    assert reads
    sleeper.process.send_signal(19)
    eventually(lambda: sleeper.read(0.1).state == "T")
    sleeper.process.send_signal(18)
    eventually(lambda: sleeper.read(0.1).state == "S")
    sleeper.process.kill()
    eventually(lambda: sleeper.read(0.1).gone)
