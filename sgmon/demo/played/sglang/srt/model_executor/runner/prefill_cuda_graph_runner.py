"""sglang/srt/model_executor/runner/prefill_cuda_graph_runner.py: one graph a number of tokens, largest first."""

from __future__ import annotations

from sgmon.demo.bar import Bar
from sgmon.demo.card import Card
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.distributed.parallel_state import GroupCoordinator
from sgmon.demo.played.sglang.srt.model_executor.runner_backend.full_cuda_graph_backend import FullCudaGraphBackend

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
    """Captures in its constructor."""

    def __init__(self, play: Play, card: Card, group: GroupCoordinator) -> None:
        self._play, self._card = play, card
        self._backend = FullCudaGraphBackend(play, card, group)
        self.capture()

    def capture(self) -> None:
        self._card.mode("work")
        self._capture_one_stream()
        self._card.mode("idle")

    def _capture_one_stream(self) -> None:
        bar = Bar(len(PREFILL_SIZES)) if self._card.rank == 0 else None
        word = "prefill shape" if self._play.parallel_init else "num tokens"
        for size in reversed(PREFILL_SIZES):
            if bar:
                bar.describe(f"Capturing {word} (num_tokens={size} avail_mem={self._card.free_gib:.2f} GB)")
            self.capture_one_shape(size)
            if bar:
                bar.update()
        if bar:
            bar.close()

    def capture_one_shape(self, size: int) -> None:
        self._backend.capture_one("prefill", size, _SECONDS / len(PREFILL_SIZES))
        self._card.grow(_GIB / len(PREFILL_SIZES))
