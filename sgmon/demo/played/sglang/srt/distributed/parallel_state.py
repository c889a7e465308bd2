"""sglang/srt/distributed/parallel_state.py: the group that the ranks work in."""

from __future__ import annotations

from sgmon.demo.play import Play
from sgmon.demo.played.torch.distributed import distributed_c10d as dist


class GroupCoordinator:
    """The tensor-parallel group of one rank."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group
        self.rank = group.rank

    def barrier(self) -> None:
        dist.barrier(self.group)

    def all_reduce(self) -> None:
        dist.all_reduce(self.group)


def init_distributed_environment(play: Play, rank: int) -> dist.ProcessGroup:
    return dist.init_process_group(play, rank)


def initialize_model_parallel(group: dist.ProcessGroup) -> GroupCoordinator:
    dist.all_reduce(group)
    return GroupCoordinator(group)
