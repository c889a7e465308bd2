"""sglang/srt/model_executor/runner/prefill_cuda_graph_runner.py: one graph a number of tokens, largest first."""

from __future__ import annotations

from sgmon.demo import jit
from sgmon.demo.bar import Bar
from sgmon.demo.play import Play
from sgmon.demo.srt.full_cuda_graph_backend import FullCudaGraphBackend
from sgmon.demo.srt.gpu import Gpu
from sgmon.demo.srt.parallel_state import GroupCoordinator

PREFILL_SIZES = [
    *(4, 8, 12, 16, 20, 24, 28, 32),
    *range(48, 257, 16),
    *range(288, 513, 32),
    *range(576, 1025, 64),
    *range(1280, 4097, 256),
    *range(4608, 8193, 512),
]
_GIB, _SECONDS = 1.95, 4.0


class PrefillCudaGraphRunner:
    """Captures in its constructor. The first shape is the one that compiles."""

    def __init__(self, play: Play, gpu: Gpu, group: GroupCoordinator) -> None:
        self._play, self._gpu = play, gpu
        self._backend = FullCudaGraphBackend(play, gpu, group)
        self.capture()

    def capture(self) -> None:
        self._gpu.mode("work")
        self._capture_one_stream()
        self._gpu.mode("idle")

    def _capture_one_stream(self) -> None:
        bar = Bar(len(PREFILL_SIZES)) if self._gpu.rank == 0 else None
        word = "prefill shape" if self._play.parallel_init else "num tokens"
        for size in reversed(PREFILL_SIZES):
            if bar:
                bar.describe(f"Capturing {word} (num_tokens={size} avail_mem={self._gpu.free_gib:.2f} GB)")
            self.capture_one_shape(size)
            if bar:
                bar.update()
        if bar:
            bar.close()

    def capture_one_shape(self, size: int) -> None:
        if size == PREFILL_SIZES[-1] and self._play.name == "compiling":
            self._gpu.mode("idle")
            jit.build_and_load(self._play, self._gpu.rank)
            self._gpu.mode("work")
        self._backend.capture_one("prefill", size, _SECONDS / len(PREFILL_SIZES))
        self._gpu.grow(_GIB / len(PREFILL_SIZES))
