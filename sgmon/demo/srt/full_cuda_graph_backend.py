"""sglang/srt/model_executor/runner_backend: synchronise, barrier, run once, capture.

In ``nccl-hang`` one rank stays in its kernel while the others have entered the collective: they spin in
cudaDeviceSynchronize, their GPUs at 100 % and flat power (seen on two H200s; research: nccl-hang).
"""

from __future__ import annotations

import os
import time

from sgmon.demo import faults
from sgmon.demo.play import Play
from sgmon.demo.srt.gpu import Gpu
from sgmon.demo.srt.parallel_state import GroupCoordinator

#: ranks that really burn a core while they spin; further ones only part of it, to spare the machine
_SPINNERS = 2


class FullCudaGraphBackend:
    """One graph at a time."""

    def __init__(self, play: Play, gpu: Gpu, group: GroupCoordinator) -> None:
        self._play, self._gpu, self._group = play, gpu, group

    def capture_one(self, kind: str, size: int, takes_s: float) -> None:
        if self._play.name == "nccl-hang" and kind == "decode" and size == 128:
            self.run_once()
            self._gpu.mode("spin")
            synchronize(self._gpu.rank)
        self._play.pause(takes_s * 0.8)
        _burn(takes_s * 0.05 / self._play.speed)
        self._play.pause(takes_s * 0.15)

    def run_once(self) -> None:
        if self._play.odd(self._gpu.rank):
            self._gpu.mode("idle")
            faults.load_kernel()


def synchronize(rank: int) -> None:
    """torch/cuda/__init__.py: never returns here. Lowest priority: it yields to everybody else."""
    os.nice(19)
    while True:
        _burn(0.05)
        if rank >= _SPINNERS:
            time.sleep(0.15)


def _burn(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
