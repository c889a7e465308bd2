"""vllm/model_executor/model_loader/default_loader.py: one shard at a time; the bar is the first rank's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from sgmon.demo import faults
from sgmon.demo.bar import Bar
from sgmon.demo.card import Card
from sgmon.demo.mapping import Mapping, read_slowly
from sgmon.demo.play import Play
from sgmon.demo.played.vllm.logger import info


class DefaultModelLoader:
    """The usual loader."""

    def __init__(self, play: Play, card: Card) -> None:
        self._play, self._card = play, card

    def load_model(self) -> None:
        initialize_model(self._play, self._card)
        self.load_weights()
        process_weights_after_loading(self._play, self._card)

    def load_weights(self) -> None:
        began = time.perf_counter()
        for number, shard in enumerate(safetensors_weights_iterator(self._play, self._card), 1):
            shard.close()
            self._card.loaded(number)
        if self._card.rank == 0:
            info("default_loader.py:501", f"Loading weights took {time.perf_counter() - began:.2f} seconds")


def initialize_model(play: Play, card: Card) -> None:
    play.pause(0.4)
    card.grow(play.scenario.weight_gib, "load")


def safetensors_weights_iterator(play: Play, card: Card) -> Iterator[Mapping]:
    files = sorted(str(path) for path in Path(play.model_path).glob("*.safetensors"))
    each_s = play.scenario.load_s / play.speed / len(files)
    bar = None
    if card.rank == 0:
        bar = Bar(len(files), "Loading safetensors checkpoint shards", words=True, ends_lines=True)
    for path in files:
        yield read_slowly(path, each_s)
        if bar:
            bar.update()
    if bar:
        bar.close()


def process_weights_after_loading(play: Play, card: Card) -> None:
    if faults.hangs_after_load(play, card.rank):
        faults.compile_kernel()
    play.pause(0.3)
