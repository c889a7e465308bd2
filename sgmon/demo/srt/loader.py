"""sglang/srt/model_loader/loader.py: builds the model, reads the weights, post-processes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sgmon.demo.mapping import Mapping
from sgmon.demo.play import Play
from sgmon.demo.srt.gpu import Gpu
from sgmon.demo.srt.models import CausalLM
from sgmon.demo.srt.parallel_state import GroupCoordinator
from sgmon.demo.srt.weight_utils import (
    buffered_multi_thread_safetensors_weights_iterator,
    safetensors_weights_iterator,
)


class DefaultModelLoader:
    """The usual loader."""

    def __init__(self, play: Play, gpu: Gpu, group: GroupCoordinator) -> None:
        self._play, self._gpu, self._group = play, gpu, group

    def load_model(self) -> CausalLM:
        model = _initialize_model(self._play, self._gpu, self._group)
        self.load_weights_and_postprocess(model, self._get_all_weights())
        return model

    def _get_all_weights(self) -> Iterator[Mapping]:
        files = sorted(str(path) for path in Path(self._play.model_path).glob("*.safetensors"))
        if self._play.release() >= (0, 5, 10):
            yield from buffered_multi_thread_safetensors_weights_iterator(files, self._play, self._gpu)
        else:
            yield from safetensors_weights_iterator(files, self._play, self._gpu)

    def load_weights_and_postprocess(self, model: CausalLM, weights: Iterator[Mapping]) -> None:
        self.load_weights_only(model, weights)
        self.postprocess_weights(model)

    def load_weights_only(self, model: CausalLM, weights: Iterator[Mapping]) -> None:
        model.load_weights(weights)

    def postprocess_weights(self, model: CausalLM) -> None:
        self._gpu.mode("work")
        model.process_weights_after_loading()
        self._gpu.mode("idle")


def _initialize_model(play: Play, gpu: Gpu, group: GroupCoordinator) -> CausalLM:
    """The parameters are created at their full size: the GPU's memory takes its one step here."""
    play.pause(0.4)
    gpu.grow(play.scenario.weight_gib, "load")
    return CausalLM(play, gpu, group)
