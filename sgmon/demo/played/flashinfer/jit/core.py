"""flashinfer/jit/core.py: who has the lock of a module builds it, who gets it later finds it built.

With a cold cache on an H200 the builder sits in a pipe above ninja > sh > nvcc > cicc, cudafe++, ptxas, and the
other ranks poll the lock; for a minute and more the log says nothing.
"""

from __future__ import annotations

import time
from pathlib import Path

from sgmon.demo.play import Play
from sgmon.demo.played.filelock._api import BaseFileLock
from sgmon.demo.played.flashinfer.jit.cpp_ext import run_ninja


class JitSpec:
    """One module to build."""

    def __init__(self, play: Play, rank: int) -> None:
        self._play, self._rank = play, rank
        self._built = Path(play.lock_path).with_suffix(".so")

    def build_and_load(self) -> None:
        if not self._play.odd(self._rank):
            self._let_builder_go_first()
        with BaseFileLock(self._play.lock_path):
            if not self._built.exists():
                run_ninja(self._play)
                self._built.touch()

    def _let_builder_go_first(self) -> None:
        lock = Path(self._play.lock_path)
        while not lock.exists():
            time.sleep(0.02)
        time.sleep(0.2)
