"""Eight real Python processes that stand somewhere, told where through a pipe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sgmon.model import Process, Role

PROGRAM = r"""
import sys

def all_reduce():
    print("there", flush=True)
    sys.stdin.read()

def barrier():
    all_reduce()

def compute_layer():
    print("there", flush=True)
    n = 0
    while n < 10**12:
        n += 1

def read_shard():
    print("there", flush=True)
    sys.stdin.read()

def run_scheduler(where):
    globals()[where]()

run_scheduler(sys.argv[1])
"""


class Ranks:
    """The processes and the model's view of them."""

    def __init__(self, places: Sequence[str]) -> None:
        self.children = [
            subprocess.Popen(
                [sys.executable, "-S", "-c", PROGRAM, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            for place in places
        ]
        for child in self.children:
            assert child.stdout is not None
            child.stdout.readline()
        self.processes = tuple(
            Process(child.pid, os.getpid(), 0, Role.WORKER, rank=f"TP{number}", state="S")
            for number, child in enumerate(self.children)
        )

    def stop(self, rank: int) -> None:
        """SIGSTOP, and wait until the kernel has done it."""
        child = self.children[rank]
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)

    def make_zombie(self, rank: int) -> None:
        """Kill it and do not reap it."""
        child = self.children[rank]
        os.kill(child.pid, signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    def close(self) -> None:
        for child in self.children:
            child.kill()
            child.communicate()


@contextmanager
def ranks(places: Sequence[str]) -> Iterator[Ranks]:
    found = Ranks(places)
    try:
        yield found
    finally:
        found.close()
