"""sglang/srt/model_executor/model_runner.py: weights, KV cache and graphs of one rank, and their log lines."""

from __future__ import annotations

import time

from sgmon.demo import console
from sgmon.demo.play import Play
from sgmon.demo.srt import cuda_graph_setup
from sgmon.demo.srt import distributed_c10d as dist
from sgmon.demo.srt.bootstrap import init_torch_distributed
from sgmon.demo.srt.gpu import DIST_GIB, Gpu
from sgmon.demo.srt.kv_cache_configurator import KVCacheConfigurator
from sgmon.demo.srt.loader import DefaultModelLoader
from sgmon.demo.srt.parallel_state import GroupCoordinator
from sgmon.demo.wording import ignored_imports, kv_dtype_line


class ModelRunner:
    """One rank's model."""

    def __init__(self, play: Play, gpu: Gpu, group: GroupCoordinator | None) -> None:
        self.play, self.gpu = play, gpu
        self.timings: dict[str, float] = {}
        self.tokens = 0
        self.group = group or self.init_torch_distributed()
        if play.parallel_init:
            console.info(f"Memory baseline taken. mem usage={DIST_GIB:.2f} GB")
        self.initialize()

    def init_torch_distributed(self) -> GroupCoordinator:
        return init_torch_distributed(self.play, self.gpu)

    def initialize(self) -> None:
        for line in ignored_imports(self.play, self.gpu.rank):
            console.info(line)
            self.play.pause(0.03)
        self.load_model()
        if self.play.release() < (0, 5, 14):
            self.init_memory_pool()
            self.init_device_graphs()

    def load_model(self) -> None:
        play, gpu = self.play, self.gpu
        free = gpu.free_gib
        console.info(f"Load weight begin. avail mem={free:.2f} GB")
        began = time.perf_counter()
        DefaultModelLoader(play, gpu, self.group).load_model()
        took = self.timings["load_weight"] = time.perf_counter() - began
        console.info(
            f"Load weight end. elapsed={took:.2f} s, type={play.scenario.model_type}, quant=fp8, "
            f"avail mem={gpu.free_gib:.2f} GB, mem usage={free - gpu.free_gib:.2f} GB."
        )
        dist_barrier_after_load(self.group, play)

    def alloc_memory_pool(self) -> None:
        self._fill_pool()

    def init_memory_pool(self) -> None:
        if self.gpu.rank == 0:
            console.info(kv_dtype_line())
        self._fill_pool()

    def _fill_pool(self) -> None:
        began = time.perf_counter()
        self.tokens = KVCacheConfigurator(self.play, self.gpu, self.group).configure()
        self.timings["kv_cache"] = time.perf_counter() - began

    def init_cuda_graphs(self) -> None:
        self.timings.update(cuda_graph_setup.capture_cuda_graphs(self.play, self.gpu, self.group))

    def init_device_graphs(self) -> None:
        self.timings.update(cuda_graph_setup.capture_decode_only(self.play, self.gpu, self.group))


def dist_barrier_after_load(group: GroupCoordinator, play: Play) -> None:
    try:
        dist.monitored_barrier(group.group, play)
    except RuntimeError:
        raise ValueError(
            f"TP rank {group.rank} could finish the model loading, but there are other ranks that "
            "didn't finish loading. It is likely due to unexpected failures (e.g., OOM) or a slow node."
        ) from None
