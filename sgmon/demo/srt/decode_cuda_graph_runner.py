"""sglang/srt/model_executor/runner/decode_cuda_graph_runner.py: one graph a batch size, the largest first."""

from __future__ import annotations

from sgmon.demo import console
from sgmon.demo.bar import Bar
from sgmon.demo.play import Play
from sgmon.demo.srt.full_cuda_graph_backend import FullCudaGraphBackend
from sgmon.demo.srt.gpu import Gpu
from sgmon.demo.srt.parallel_state import GroupCoordinator

DECODE_SIZES = [1, 2, 4, 8, 12, 16, *range(24, 257, 8)]
#: what all graphs of this kind take of the GPU, and how long they take
_GIB, _SECONDS = 0.72, 3.0


class DecodeCudaGraphRunner:
    """Captures in its constructor, as the real one does."""

    def __init__(self, play: Play, gpu: Gpu, group: GroupCoordinator) -> None:
        self._play, self._gpu = play, gpu
        self._backend = FullCudaGraphBackend(play, gpu, group)
        self.capture()

    def capture(self) -> None:
        self._gpu.mode("work")
        self._capture_one_stream()
        self._gpu.mode("idle")

    def _capture_one_stream(self) -> None:
        bar = Bar(len(DECODE_SIZES)) if self._gpu.rank == 0 else None
        for size in reversed(DECODE_SIZES):
            if bar:
                bar.describe(f"Capturing batches (bs={size} avail_mem={self._gpu.free_gib:.2f} GB)")
            self.capture_one_shape(size)
            if bar:
                bar.update()
        if bar:
            bar.close()

    def capture_one_shape(self, size: int) -> None:
        self._backend.capture_one("decode", size, _SECONDS / len(DECODE_SIZES))
        self._gpu.grow(_GIB / len(DECODE_SIZES))
        if size == DECODE_SIZES[-1] and self._gpu.rank == 0:
            console.info(f"multimem all-gather disabled (no multicast for world_size={self._play.tp})")
