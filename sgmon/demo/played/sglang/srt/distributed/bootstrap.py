"""sglang/srt/distributed/bootstrap.py: process groups, the gate, and the lines around them."""

from __future__ import annotations

import time

from sgmon.demo import console
from sgmon.demo.card import DIST_GIB, Card
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.distributed.gated_launch import maybe_wait_for_gated_launch
from sgmon.demo.played.sglang.srt.distributed.parallel_state import (
    GroupCoordinator,
    init_distributed_environment,
    initialize_model_parallel,
)


def init_parallel_runtime(play: Play, card: Card) -> GroupCoordinator:
    """0.5.21 and newer: before the tokenizer, once."""
    console.info("Init parallel begin.")
    began = time.perf_counter()
    group = _init_parallel_groups(play, card)
    console.info(f"Init parallel ends. elapsed={time.perf_counter() - began:.2f} s")
    return group


def init_torch_distributed(play: Play, card: Card) -> GroupCoordinator:
    """Up to 0.5.20: in the model runner."""
    console.info("Init torch distributed begin.")
    began = time.perf_counter()
    group = _init_parallel_groups(play, card)
    console.info(
        f"Init torch distributed ends. elapsed={time.perf_counter() - began:.2f} s, mem usage={DIST_GIB:.2f} GB"
    )
    return group


def _init_parallel_groups(play: Play, card: Card) -> GroupCoordinator:
    card.open_context()
    world = init_distributed_environment(play, card.rank)
    if card.rank == 0:
        console.info("sglang is using nccl==2.28.9")
    play.pause(0.8)
    group = initialize_model_parallel(world)
    card.hold(DIST_GIB, "idle")
    maybe_wait_for_gated_launch(play, group)
    return group
