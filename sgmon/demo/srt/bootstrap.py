"""sglang/srt/distributed/bootstrap.py: process groups, the gate, and the lines around them."""

from __future__ import annotations

import time

from sgmon.demo import console
from sgmon.demo.play import Play
from sgmon.demo.srt.gated_launch import maybe_wait_for_gated_launch
from sgmon.demo.srt.gpu import DIST_GIB, Gpu
from sgmon.demo.srt.parallel_state import (
    GroupCoordinator,
    init_distributed_environment,
    initialize_model_parallel,
)


def init_parallel_runtime(play: Play, gpu: Gpu) -> GroupCoordinator:
    """0.5.21 and newer: before the tokenizer, once."""
    console.info("Init parallel begin.")
    began = time.perf_counter()
    group = _init_parallel_groups(play, gpu)
    console.info(f"Init parallel ends. elapsed={time.perf_counter() - began:.2f} s")
    return group


def init_torch_distributed(play: Play, gpu: Gpu) -> GroupCoordinator:
    """Up to 0.5.20: in the model runner."""
    console.info("Init torch distributed begin.")
    began = time.perf_counter()
    group = _init_parallel_groups(play, gpu)
    console.info(
        f"Init torch distributed ends. elapsed={time.perf_counter() - began:.2f} s, mem usage={DIST_GIB:.2f} GB"
    )
    return group


def _init_parallel_groups(play: Play, gpu: Gpu) -> GroupCoordinator:
    gpu.open_context()
    world = init_distributed_environment(play, gpu.rank)
    if gpu.rank == 0:
        console.info("sglang is using nccl==2.28.9")
    play.pause(0.8)
    group = initialize_model_parallel(world)
    gpu.hold(DIST_GIB, "idle")
    maybe_wait_for_gated_launch(play, group)
    return group
