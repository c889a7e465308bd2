"""sglang/srt/model_executor/model_runner_components/load_model_utils.py: the load, and the barrier after it."""

from __future__ import annotations

from sgmon.demo.card import Card
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.distributed.parallel_state import GroupCoordinator
from sgmon.demo.played.sglang.srt.model_loader.loader import DefaultModelLoader
from sgmon.demo.played.torch.distributed import distributed_c10d as dist


def load_model_with_memory_saver(play: Play, card: Card, group: GroupCoordinator) -> None:
    DefaultModelLoader(play, card, group).load_model()


def dist_barrier_after_load(group: GroupCoordinator, play: Play) -> None:
    """Printed "Load weight end" before it; so the log does not tell who is still on the way."""
    try:
        dist.monitored_barrier(group.group, play)
    except RuntimeError:
        raise ValueError(
            f"TP rank {group.rank} could finish the model loading, but there are other ranks that "
            "didn't finish loading. It is likely due to unexpected failures (e.g., OOM) or a slow node."
        ) from None
