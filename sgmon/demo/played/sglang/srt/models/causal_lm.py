"""sglang/srt/models: the model that is loaded, with the places in it where a rank can hang."""

from __future__ import annotations

import time
from collections.abc import Iterator

from sgmon.demo import console, faults
from sgmon.demo.card import Card
from sgmon.demo.mapping import Mapping
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.distributed.parallel_state import GroupCoordinator


class CausalLM:
    """Qwen3MoeForCausalLM or DeepseekV4ForCausalLM, as far as a start can tell them apart."""

    def __init__(self, play: Play, card: Card, group: GroupCoordinator) -> None:
        self._play, self._card, self._group = play, card, group

    def load_weights(self, weights: Iterator[Mapping]) -> None:
        for number, shard in enumerate(weights, 1):
            self.weight_loader(shard)
            self._card.loaded(number)
            faults.after_shard(self._play, self._card, number)
        self._card.mode("idle")
        self.post_load_weights()

    def weight_loader(self, shard: Mapping) -> None:
        """Copies the tensor to the GPU: reads what is in the map already."""
        sum(shard.view[:: 64 * 1024])

    def post_load_weights(self) -> None:
        if self._play.scenario.model_type == "DeepseekV4ForCausalLM" and self._play.parallel_init:
            self._prewarm_mhc_kernels()

    def _prewarm_mhc_kernels(self) -> None:
        """0.5.23, models/deepseek_v4.py: JIT at load, then a barrier, both before "Load weight end"."""
        began = time.perf_counter()
        prewarm_mhc_pre(self._play, self._card)
        compiled = time.perf_counter()
        self._card.mode("idle")
        self._group.barrier()
        console.info(
            f"DeepSeek V4 MHC prewarm at load: compile {compiled - began:.1f}s, "
            f"rank sync +{time.perf_counter() - compiled:.1f}s"
        )

    def process_weights_after_loading(self) -> None:
        if faults.hangs_in_postprocess(self._play, self._card.rank):
            faults.compile_kernel()
        self._play.pause(0.3)


def prewarm_mhc_pre(play: Play, card: Card) -> None:
    """sglang/kernels/ops/layernorm/mhc.py: compiles the kernels of the hyper-connections."""
    if faults.hangs_in_prewarm(play, card.rank):
        faults.compile_kernel()
    play.pause(0.5)
