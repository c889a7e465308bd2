"""sglang/srt/model_executor/runner/decode_cuda_graph_runner.py: one graph a batch size, the largest first."""

from __future__ import annotations

from sgmon.demo import console
from sgmon.demo.bar import Bar
from sgmon.demo.card import Card
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.distributed.parallel_state import GroupCoordinator
from sgmon.demo.played.sglang.srt.model_executor.runner_backend.full_cuda_graph_backend import FullCudaGraphBackend

DECODE_SIZES = [1, 2, 4, 8, 12, 16, *range(24, 257, 8)]
#: what all graphs of this kind take of the GPU, and how long they take
_GIB, _SECONDS = 0.72, 3.0


class DecodeCudaGraphRunner:
    """Captures in its constructor, as the real one does."""

    def __init__(self, play: Play, card: Card, group: GroupCoordinator) -> None:
        self._play, self._card = play, card
        self._backend = FullCudaGraphBackend(play, card, group)
        self.capture()

    def capture(self) -> None:
        self._card.mode("work")
        self._capture_one_stream()
        self._card.mode("idle")

    def _capture_one_stream(self) -> None:
        bar = Bar(len(DECODE_SIZES)) if self._card.rank == 0 else None
        for size in reversed(DECODE_SIZES):
            if bar:
                bar.describe(f"Capturing batches (bs={size} avail_mem={self._card.free_gib:.2f} GB)")
            self.capture_one_shape(size)
            if bar:
                bar.update()
        if bar:
            bar.close()

    def capture_one_shape(self, size: int) -> None:
        self._backend.capture_one("decode", size, _SECONDS / len(DECODE_SIZES))
        self._card.grow(_GIB / len(DECODE_SIZES))
        if size == DECODE_SIZES[-1] and self._card.rank == 0:
            console.info(f"multimem all-gather disabled (no multicast for world_size={self._play.tp})")
