"""torch/distributed/rendezvous.py: where rank 0 of the first node waits for the peers."""

from __future__ import annotations

import time

from sgmon.demo.play import Play
from sgmon.demo.store import StoreClient, StoreServer

_servers: list[StoreServer] = []


def _tcp_rendezvous_handler(play: Play, rank: int) -> StoreClient:
    return _create_c10d_store(play, rank)


def _create_c10d_store(play: Play, rank: int) -> StoreClient:
    """Rank 0 asks its own store again and again: some 190 small system calls a second, 1-2 % of a core.

    So does TCPStore::waitForWorkers every 10 ms (a real start without a peer: wchan hrtimer_nanosleep);
    Python needs more calls and more time for each question, so this one asks less often.
    """
    if rank == 0:
        _servers.append(StoreServer(play.dist_port, play.tp))
    client = StoreClient("127.0.0.1", play.dist_port)
    joined = client.ask("join")
    if rank == 0:
        while joined < play.tp:
            time.sleep(0.027)
            joined = client.ask("count")
    return client
