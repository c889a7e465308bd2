"""sglang/srt/managers/tp_worker.py: between the scheduler and the model runner."""

from __future__ import annotations

from sgmon.demo.card import Card
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.distributed.parallel_state import GroupCoordinator
from sgmon.demo.played.sglang.srt.model_executor.model_runner import ModelRunner


class TpModelWorker:
    """One rank's worker."""

    def __init__(self, play: Play, card: Card, group: GroupCoordinator | None) -> None:
        self._play, self._card, self._group = play, card, group
        self._init_model_runner()

    def _init_model_runner(self) -> None:
        self.model_runner = ModelRunner(self._play, self._card, self._group)

    def alloc_memory_pool(self) -> None:
        self.model_runner.alloc_memory_pool()

    def init_cuda_graphs(self) -> None:
        self.model_runner.init_cuda_graphs()
