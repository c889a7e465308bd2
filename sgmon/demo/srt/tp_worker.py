"""sglang/srt/managers/tp_worker.py: between the scheduler and the model runner."""

from __future__ import annotations

from sgmon.demo.play import Play
from sgmon.demo.srt.gpu import Gpu
from sgmon.demo.srt.model_runner import ModelRunner
from sgmon.demo.srt.parallel_state import GroupCoordinator


class TpModelWorker:
    """One rank's worker."""

    def __init__(self, play: Play, gpu: Gpu, group: GroupCoordinator | None) -> None:
        self._play, self._gpu, self._group = play, gpu, group
        self._init_model_runner()

    def _init_model_runner(self) -> None:
        self.model_runner = ModelRunner(self._play, self._gpu, self._group)

    def alloc_memory_pool(self) -> None:
        self.model_runner.alloc_memory_pool()

    def init_cuda_graphs(self) -> None:
        self.model_runner.init_cuda_graphs()
