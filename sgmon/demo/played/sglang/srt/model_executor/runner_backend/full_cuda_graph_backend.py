"""sglang/srt/model_executor/runner_backend: run a shape once, synchronise, capture.

In ``nccl-hang`` one rank stays in its kernel while the others have entered the collective: they spin in
cudaDeviceSynchronize, their GPUs at 100 % and flat power (seen on two H200s; research: nccl-hang).
"""

from __future__ import annotations

from sgmon.demo import faults
from sgmon.demo.card import Card
from sgmon.demo.load import burn
from sgmon.demo.play import Play
from sgmon.demo.played.flashinfer.jit.core import JitSpec
from sgmon.demo.played.sglang.srt.distributed.parallel_state import GroupCoordinator
from sgmon.demo.played.torch.cuda import synchronize


class FullCudaGraphBackend:
    """One graph at a time. The first shape of all is the one that compiles."""

    def __init__(self, play: Play, card: Card, group: GroupCoordinator) -> None:
        self._play, self._card, self._group = play, card, group
        self._compiled = play.name != "compiling"

    def capture_one(self, kind: str, size: int, takes_s: float) -> None:
        self.run_once(kind, size)
        if faults.collective_hangs(self._play, kind, size):
            self._card.mode("spin")
            synchronize(self._card.rank)
        self._play.pause(takes_s * 0.8)
        burn(takes_s * 0.05 / self._play.speed)
        self._play.pause(takes_s * 0.15)

    def run_once(self, kind: str, size: int) -> None:
        if not self._compiled:
            self._compiled = True
            self._card.mode("idle")
            JitSpec(self._play, self._card.rank).build_and_load()
            self._card.mode("work")
        if faults.collective_hangs(self._play, kind, size) and self._play.odd(self._card.rank):
            self._card.mode("idle")
            faults.load_kernel()
