"""torch.distributed as a stack dump shows it: collectives that block in a futex until every rank is there."""

from __future__ import annotations

import threading

from sgmon.demo.play import Play
from sgmon.demo.played.torch.distributed.rendezvous import _tcp_rendezvous_handler
from sgmon.demo.store import StoreClient

#: SGLang gives a rank that loads this long after the first one (>= 0.5.6.post2)
UNBALANCED_MODEL_LOADING_TIMEOUT_S = 480


class ProcessGroup:
    """All ranks of the server; each collective has its own number, the same on every rank."""

    def __init__(self, client: StoreClient, rank: int) -> None:
        self.client = client
        self.rank = rank
        self._calls: dict[str, int] = {}

    def arrive(self, kind: str) -> threading.Lock:
        return self.client.arrive(self._next(kind))

    def upcoming(self, kind: str) -> bool:
        """Has another rank already entered the next collective of this kind?"""
        return f"{kind}#{self._calls.get(kind, 0) + 1}" in self.client.hints

    def _next(self, kind: str) -> str:
        self._calls[kind] = self._calls.get(kind, 0) + 1
        return f"{kind}#{self._calls[kind]}"


def init_process_group(play: Play, rank: int) -> ProcessGroup:
    client = _tcp_rendezvous_handler(play, rank)
    group = ProcessGroup(client, rank)
    return _new_process_group_helper(group)


def _new_process_group_helper(group: ProcessGroup) -> ProcessGroup:
    """Waits for the others' addresses, in a recv from the store."""
    group.client.wait("new_group")
    group.client.listen()
    return group


def barrier(group: ProcessGroup) -> None:
    group.arrive("barrier").acquire()


def all_reduce(group: ProcessGroup) -> None:
    group.arrive("all_reduce").acquire()


def broadcast(group: ProcessGroup) -> None:
    group.arrive("broadcast").acquire()


def monitored_barrier(group: ProcessGroup, play: Play) -> None:
    """Gives up like the real one; the wait itself has no time-out, so that it sits in a plain futex."""
    gate = group.arrive("monitored_barrier")
    late = threading.Event()

    def give_up() -> None:
        late.set()
        gate.release()

    timer = threading.Timer(UNBALANCED_MODEL_LOADING_TIMEOUT_S / play.speed, give_up)
    timer.daemon = True
    timer.start()
    gate.acquire()
    timer.cancel()
    if late.is_set():
        raise RuntimeError("[Rank 0]: Ranks failed to pass monitoredBarrier in 480000 ms")
