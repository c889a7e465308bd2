"""What goes wrong, and where: called by the played server at the places where the scenarios differ."""

from __future__ import annotations

import os
import threading
import time

from sgmon.demo import tracebacks
from sgmon.demo.card import Card
from sgmon.demo.play import Play


class PlayedFailureError(Exception):
    """A failure of the scenario; its text is the traceback that the log is to show."""


def after_shard(play: Play, card: Card, number: int) -> None:
    """``crash``: a damaged shard. ``stopped``, ``killed``: the guard sends the signal half way."""
    if not play.odd(card.rank) or number < play.scenario.shards // 2:
        return
    if play.name == "crash":
        raise PlayedFailureError(tracebacks.damaged_shard(play))
    if play.name in ("stopped", "killed"):
        while not card.acted:
            time.sleep(0.01)


def hangs_in_prewarm(play: Play, rank: int) -> bool:
    """``stuck-rank`` from 0.5.21 on: a barrier follows, still before "Load weight end"."""
    return play.name == "stuck-rank" and play.odd(rank) and play.parallel_init


def hangs_in_postprocess(play: Play, rank: int) -> bool:
    """``stuck-rank`` before 0.5.21, where nothing stands between the weights and the barrier."""
    return play.name == "stuck-rank" and play.odd(rank) and not play.parallel_init


def hangs_after_load(play: Play, rank: int) -> bool:
    """``vllm-stuck-rank``: the weights are read, their post-processing never ends; the others wait in their queue."""
    return play.name == "vllm-stuck-rank" and play.odd(rank)


def in_kv_cache(play: Play, card: Card) -> None:
    """``oom``: the driver says no after most of the pool is there."""
    if play.name == "oom":
        card.grow(card.free_gib - 1.19)
        play.pause(0.2)
        raise PlayedFailureError(tracebacks.out_of_memory(play, card.rank))


def compile_kernel() -> None:
    """Reads from a compiler that never answers: the writing end is our own, left open by mistake."""
    reading, _writing = os.pipe()
    os.read(reading, 1)


def collective_hangs(play: Play, kind: str, size: int) -> bool:
    """``nccl-hang``: in the middle of the decode graphs; the odd rank stays behind, the others go in."""
    return play.name == "nccl-hang" and kind == "decode" and size == 128


def load_kernel() -> None:
    """Waits for a lock that nobody releases."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
