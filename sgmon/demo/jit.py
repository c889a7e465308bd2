"""``compiling``: one rank builds a module with real child processes, the others wait for its file lock.

As flashinfer does with a cold cache on an H200: ninja > sh > nvcc > cicc, cudafe++, ptxas one after the other
under one rank, which sits in a pipe; the others poll the lock every 50 ms (filelock's _poll_until_acquired).
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

from sgmon.demo.play import Play


class BaseFileLock:
    """filelock's lock, as far as it shows in a stack dump and in /proc/locks."""

    def __init__(self, path: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def acquire(self) -> None:
        self._poll_until_acquired()

    def _poll_until_acquired(self) -> None:
        while not self._try():
            time.sleep(0.05)

    def _try(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        os.close(self._fd)


def build_and_load(play: Play, rank: int) -> None:
    """JitSpec.build_and_load: who has the lock builds; who gets it later finds the module built."""
    built = Path(play.lock_path).with_suffix(".so")
    if not play.odd(rank):
        _let_builder_go_first(play)
    lock = BaseFileLock(play.lock_path)
    lock.acquire()
    if not built.exists():
        run_ninja(play)
        built.touch()
    lock.release()


def run_ninja(play: Play) -> None:
    """Waits at the pipe of the compiler's output."""
    command = [sys.executable, "-m", "sgmon.demo.compilers", "ninja", str(play.speed), play.directory]
    subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True)


def _let_builder_go_first(play: Play) -> None:
    path = Path(play.lock_path)
    while not path.exists():
        time.sleep(0.02)
    time.sleep(0.2)
