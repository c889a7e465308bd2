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


def test_a_paused_rank_stays_in_its_own_phase() -> None:
    """A line that names no rank moves the start on; a process that cannot run is where it was."""
    world = World(tp=2).to("weights")
    world.run(3)
    world["TP1"].does(state="T", wchan="do_signal_stop")
    world.run(2)
    world.log("Capture cuda graph begin. This can take up to several minutes. avail mem=20.00 GB")
    world.run(2)
    assert {rank.name: rank.phase for rank in world.store.snapshot.ranks} == {"TP0": "graphs", "TP1": "weights"}
    assert world.verdict.headline.startswith("TP1 is paused (SIGSTOP) in the weight load")


def test_a_crash_names_the_phase_of_the_rank_that_died() -> None:
    world = World(tp=2)
    world.log("TP0: Init torch distributed begin.", "TP1: Init torch distributed begin.")
    world.run(3)
    world.log("TP0: Init torch distributed ends. mem usage=0.10 GB", "TP0: Load weight begin. avail mem=70.00 GB")
    world.run(2)
    world["TP1"].does(gone=True, state="X", exit_signal=9)
    world.run(2)
    assert world.verdict.headline.startswith("TP1 (pid 102) was killed by SIGKILL in the distributed initialisation")


def test_a_pause_is_no_silence_that_ended_by_itself() -> None:
    """A frozen process shows no state T: its pause raised the limits of this start all the same."""
    world = World(tp=2, gpu=False).to("weights")
    for rank in world.ranks:
        rank.compute()
    world.run(5)
    for rank in world.ranks:
        rank.does(frozen=True, cpu=0.0)
    world.run(40)
    for rank in world.ranks:
        rank.does(frozen=False, cpu=1.0)
    world.run(5)
    assert all(rank.clock.longest_quiet_s < 10 for rank in world.store.snapshot.ranks if rank.clock is not None)


def test_panel_and_verdict_read_one_decision_about_a_gpu() -> None:
    """Pinned with flat power far above its own idle level is work, for both."""
    world = World(tp=2).to("graphs")
    world.run(20)
    for rank in world.ranks:
        rank.spin(watts=690.0)
    world.run(20)
    snapshot = world.store.snapshot
    assert [load.work for load in snapshot.gpu_loads] == ["works", "works"]
    assert all(rank.wait.kind is not WaitKind.GPU_SPIN for rank in snapshot.ranks)
    for rank in world.ranks:
        rank.spin(watts=125.0)
    world.run(20)
    snapshot = world.store.snapshot
    assert [load.work for load in snapshot.gpu_loads] == ["spins", "spins"]
    assert all(rank.wait.kind is WaitKind.GPU_SPIN for rank in snapshot.ranks)
