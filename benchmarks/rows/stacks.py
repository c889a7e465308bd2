"""Stacks of eight ranks, merged, beside ``py-spy dump`` for one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from benchmarks import peers
from benchmarks.registry import Group, Options, Round, Values, in_turns, rows_of
from benchmarks.stacks import RANK, STACKS, TICKER, Target, by_hand, cpu_s, dump_all, merge

RANKS = 8


@contextmanager
def prepare(options: Options) -> Iterator[Round]:
    peers.pyspy()
    with ExitStack() as stack:
        targets = [Target(RANK if number else TICKER) for number in range(RANKS)]
        for target in targets:
            stack.callback(target.close)
        yield in_turns(
            {
                "one sample of D": timed(lambda: merge(list(dump_all(targets, 1)), STACKS), targets[0]),
                "py-spy in a row": timed(lambda: by_hand(targets), targets[0]),
            }
        )


def timed(work: Callable[[], object], ticker: Target) -> Callable[[], Values]:
    """Seconds, CPU seconds, and the longest gap in a target meanwhile."""

    def measure() -> Values:
        ticker.worst_pause_s()
        before, began = cpu_s(), time.perf_counter()
        work()
        took = time.perf_counter() - began
        return {"s": took, "CPU s": cpu_s() - before, "pause s": ticker.worst_pause_s()}

    return measure


ROWS = rows_of("stacks", "one sample of D/py-spy in a row", "s", "CPU s", "pause s")
GROUPS = (Group("stacks", "merged stacks of 8 ranks", ROWS, prepare, rounds=7),)
