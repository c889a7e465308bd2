"""sglang/srt/model_loader/loader.py: builds the model, reads the weights, post-processes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sgmon.demo.card import Card
from sgmon.demo.mapping import Mapping
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.distributed.parallel_state import GroupCoordinator
from sgmon.demo.played.sglang.srt.model_loader.weight_utils import (
    buffered_multi_thread_safetensors_weights_iterator,
    safetensors_weights_iterator,
)
from sgmon.demo.played.sglang.srt.models.causal_lm import CausalLM


class DefaultModelLoader:
    """The usual loader."""

    def __init__(self, play: Play, card: Card, group: GroupCoordinator) -> None:
        self._play, self._card, self._group = play, card, group

    def load_model(self) -> CausalLM:
        model = _initialize_model(self._play, self._card, self._group)
        self.load_weights_and_postprocess(model, self._get_all_weights())
        return model

    def _get_all_weights(self) -> Iterator[Mapping]:
        files = sorted(str(path) for path in Path(self._play.model_path).glob("*.safetensors"))
        if self._play.release() >= (0, 5, 10):
            yield from buffered_multi_thread_safetensors_weights_iterator(files, self._play, self._card)
        else:
            yield from safetensors_weights_iterator(files, self._play, self._card)

    def load_weights_and_postprocess(self, model: CausalLM, weights: Iterator[Mapping]) -> None:
        self.load_weights_only(model, weights)
        self.postprocess_weights(model)

    def load_weights_only(self, model: CausalLM, weights: Iterator[Mapping]) -> None:
        model.load_weights(weights)

    def postprocess_weights(self, model: CausalLM) -> None:
        self._card.mode("work")
        model.process_weights_after_loading()
        self._card.mode("idle")


def _initialize_model(play: Play, card: Card, group: GroupCoordinator) -> CausalLM:
    """The parameters are created at their full size: the GPU's memory takes its one step here."""
    play.pause(0.4)
    card.grow(play.scenario.weight_gib, "load")
    return CausalLM(play, card, group)
