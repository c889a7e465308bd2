"""``Snapshot.ranks``: made once in the store, what the rules and the panels read."""

from __future__ import annotations

from sgmon.model import Event, RankState, WaitKind
from tests.diagnosis.world import World


def loading() -> World:
    world = World(tp=2)
    world.log("TP0: Init torch distributed begin.", "TP1: Init torch distributed begin.")
    world.run(3)
    world.log("TP0: Init torch distributed ends. mem usage=0.10 GB", "TP0: Load weight begin. avail mem=70.00 GB")
    world.run(2)
    return world


def test_each_rank_has_its_own_phase_milestones_and_gpu() -> None:
    ranks = {rank.name: rank for rank in loading().store.snapshot.ranks}
    assert [ranks["TP0"].phase, ranks["TP1"].phase] == ["weights", "dist_init"]
    assert [m.name for m in ranks["TP0"].passed] == ["dist_init_begin", "dist_init_end", "load_begin"]
    assert [m.name for m in ranks["TP1"].passed] == ["dist_init_begin"]
    assert all(m.t is not None for m in ranks["TP0"].passed)
    assert [ranks["TP0"].gpu.index, ranks["TP1"].gpu.index] == [0, 1]  # type: ignore[union-attr]
    assert ranks["TP0"].pid == ranks["TP0"].pids[0]


def test_a_tick_alone_makes_no_new_ranks() -> None:
    world = loading()
    before = world.store.snapshot
    after = world.store.step(Event(world.t + 0.5, "tick"))
    assert after.ranks is before.ranks
    rank = after.ranks[0]
    assert rank.quiet_s(after.t + 10) == rank.quiet_s(after.t) + 10
    assert not rank.active(rank.activity_t + 7) and rank.active(rank.activity_t + 5)


def test_stopped_and_frozen_are_decided_once() -> None:
    world = loading()
    world["TP0"].does(state="T", wchan="do_signal_stop")
    world["TP1"].does(frozen=True)
    world.run(2)
    assert [rank.state for rank in world.store.snapshot.ranks] == [RankState.PAUSED, RankState.FROZEN]
    assert all(rank.paused for rank in world.store.snapshot.ranks)


def test_a_rank_says_what_it_waits_in() -> None:
    world = loading()
    world["TP1"].store_wait()
    world.run(12)
    rank = next(rank for rank in world.store.snapshot.ranks if rank.name == "TP1")
    assert (rank.wait.kind, rank.state, rank.waits_for_peer) == (WaitKind.STORE, RankState.WAITING, True)


def test_a_rank_that_has_ended_stays_with_its_last_facts() -> None:
    world = loading()
    world["TP1"].gone = True
    world.run(5)
    states = {rank.name: rank.state for rank in world.store.snapshot.ranks}
    assert states["TP1"] is RankState.GONE and states["TP0"] is not RankState.GONE
