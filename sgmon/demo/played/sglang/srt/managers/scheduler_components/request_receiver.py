"""sglang/srt/managers/scheduler_components/request_receiver.py: rank 0 hears requests, the others hear of them.

The same stack stands in a healthy idle server and in one whose peer hangs; only the idle one burns CPU.
"""

from __future__ import annotations

from multiprocessing.connection import Connection

from sgmon.demo.load import idle
from sgmon.demo.played.torch.distributed.distributed_c10d import ProcessGroup
from sgmon.demo.played.torch.distributed.distributed_c10d import broadcast as c10d_broadcast


class SchedulerRequestReceiver:
    """One rank's ear."""

    def __init__(self, group: ProcessGroup, pipe: Connection) -> None:
        self._group, self._pipe = group, pipe

    def recv_requests(self) -> list[str]:
        requests = self._recv_raw_requests() if self._group.rank == 0 else []
        if self._group.rank == 0 and not requests:
            idle()
            return []
        return self._broadcast_reqs_across_ranks(requests)

    def _recv_raw_requests(self) -> list[str]:
        return [self._pipe.recv()] if self._pipe.poll(0) else []

    def _broadcast_reqs_across_ranks(self, requests: list[str]) -> list[str]:
        return broadcast_pyobj(self._group, requests)


def broadcast_pyobj(group: ProcessGroup, requests: list[str]) -> list[str]:
    return broadcast(group, requests)


def broadcast(group: ProcessGroup, requests: list[str]) -> list[str]:
    """A rank without a request spins here in the real server; this one burns a part of a core only."""
    while group.rank and not group.upcoming("broadcast"):
        idle()
    c10d_broadcast(group)
    return requests or ["request"]
