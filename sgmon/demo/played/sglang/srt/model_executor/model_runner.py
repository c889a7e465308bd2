"""sglang/srt/model_executor/model_runner.py: weights, KV cache and graphs of one rank, and their log lines."""

from __future__ import annotations

import time

from sgmon.demo import console
from sgmon.demo.card import DIST_GIB, Card
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.distributed.bootstrap import init_torch_distributed
from sgmon.demo.played.sglang.srt.distributed.parallel_state import GroupCoordinator
from sgmon.demo.played.sglang.srt.mem_cache.kv_cache_configurator import KVCacheConfigurator
from sgmon.demo.played.sglang.srt.model_executor.model_runner_components import cuda_graph_setup
from sgmon.demo.played.sglang.srt.model_executor.model_runner_components.load_model_utils import (
    dist_barrier_after_load,
    load_model_with_memory_saver,
)
from sgmon.demo.wording import ignored_imports, kv_dtype_line


class ModelRunner:
    """One rank's model."""

    def __init__(self, play: Play, card: Card, group: GroupCoordinator | None) -> None:
        self.play, self.card = play, card
        self.timings: dict[str, float] = {}
        self.tokens = 0
        self.group = group or self.init_torch_distributed()
        if play.parallel_init:
            console.info(f"Memory baseline taken. mem usage={DIST_GIB:.2f} GB")
        self.initialize()

    def init_torch_distributed(self) -> GroupCoordinator:
        return init_torch_distributed(self.play, self.card)

    def initialize(self) -> None:
        for line in ignored_imports(self.play, self.card.rank):
            console.info(line)
            self.play.pause(0.03)
        self.load_model()
        if self.play.release() < (0, 5, 14):
            self.init_memory_pool()
            self.init_device_graphs()

    def load_model(self) -> None:
        play, card = self.play, self.card
        free = card.free_gib
        console.info(f"Load weight begin. avail mem={free:.2f} GB")
        began = time.perf_counter()
        load_model_with_memory_saver(play, card, self.group)
        took = self.timings["load_weight"] = time.perf_counter() - began
        console.info(
            f"Load weight end. elapsed={took:.2f} s, type={play.scenario.model_type}, quant=fp8, "
            f"avail mem={card.free_gib:.2f} GB, mem usage={free - card.free_gib:.2f} GB."
        )
        dist_barrier_after_load(self.group, play)

    def alloc_memory_pool(self) -> None:
        self._fill_pool()

    def init_memory_pool(self) -> None:
        if self.card.rank == 0:
            console.info(kv_dtype_line())
        self._fill_pool()

    def _fill_pool(self) -> None:
        began = time.perf_counter()
        self.tokens = KVCacheConfigurator(self.play, self.card, self.group).configure()
        self.timings["kv_cache"] = time.perf_counter() - began

    def init_cuda_graphs(self) -> None:
        self.timings.update(cuda_graph_setup.capture_cuda_graphs(self.play, self.card, self.group))

    def init_device_graphs(self) -> None:
        self.timings.update(cuda_graph_setup.capture_decode_only(self.play, self.card, self.group))
