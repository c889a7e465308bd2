"""A thousand simulated crashes: who died first is right or "not known", never wrong."""

from __future__ import annotations

from collections import Counter

import pytest

from sgmon.analyse.deaths.order import order_of
from sgmon.analyse.store import Store
from sgmon.model import Snapshot
from tests.deaths.crashes import Crash, VllmCrash

CRASHES, PARTS = 1000, 10
#: of these must be named in the end
KNOWN = 0.8


def _named(snapshot: Snapshot) -> int | None:
    """Pid of the process that is named as the first; None: nobody."""
    order = order_of(snapshot)
    if order is None:
        return None
    if order.cause is not None and order.cause.rank:
        return next(c.pid for c in snapshot.clocks if c.rank == order.cause.rank)
    return order.first.pid if order.first is not None else None


def _play(crash: Crash) -> tuple[list[tuple[float, int]], Snapshot]:
    """Every wrong name with its time, and the last snapshot."""
    store, wrong = Store(0.0), []
    for _, event in crash.events():
        snapshot = store.step(event)
        named = _named(snapshot) if snapshot.t >= crash.died_t else None
        if named is not None and named != crash.culprit:
            wrong.append((snapshot.t, named))
    return wrong, store.snapshot


@pytest.mark.parametrize("seed", [1459, 929, 1190, 1816])
def test_a_rank_that_is_ended_by_sigterm_for_the_failure_of_another(seed: int) -> None:
    """1459: the engine core ends itself more than 2 s after its workers. The others: no log, and the rank that has
    failed ends after those that were ended for it, or together with them."""
    wrong, _ = _play(VllmCrash(seed))
    assert not wrong


@pytest.mark.parametrize("part", range(PARTS))
def test_the_first_to_die_is_named_right_or_not_at_all(part: int) -> None:
    known = Counter[bool]()
    for seed in range(part * CRASHES // PARTS, (part + 1) * CRASHES // PARTS):
        crash = VllmCrash(seed) if seed % 4 == 3 else Crash(seed)
        wrong, last = _play(crash)
        assert not wrong, f"seed {seed}: {crash.story}, culprit {crash.culprit}: named {wrong[0]}"
        assert last.verdict.state == "crashed"
        known[_named(last) == crash.culprit] += 1
    assert known[True] >= KNOWN * known.total()
