"""Signs of life: floors, windows, and that the same events give the same clocks."""

from __future__ import annotations

from sgmon.analyse.activity.tracker import ActivityTracker
from sgmon.analyse.store import Store
from sgmon.model import ActivityClock
from tests.diagnosis.world import MB, World
from tests.recorded import recording


def clock(world: World, rank: str = "TP0") -> ActivityClock:
    return next(c for c in world.store.snapshot.clocks if c.rank == rank)


def signals(world: World, rank: str = "TP0") -> set[str]:
    """Signals that moved in the last two seconds, apart from the log."""
    return {m.signal for m in clock(world, rank).marks if world.t - m.t <= 2.0} - {"log", "title"}


def test_store_poll_and_gloo_idle_are_no_life() -> None:
    world = World(2)
    world["TP0"].store_wait()
    world["TP1"].gloo_wait()
    world.run(30)
    assert signals(world, "TP0") == set()
    assert signals(world, "TP1") == set()
    assert 3000 < (clock(world).rchar_rate or 0) < 4000


def test_floors_of_bytes_and_memory() -> None:
    for field, enough, little in (("read", 40_000, 20_000), ("mapped", 40_000, 20_000), ("anon", 200_000, 50_000)):
        world = World(2)
        world["TP0"].does(**{field: enough})
        world["TP1"].does(**{field: little})
        world.run(10)
        assert signals(world, "TP0") != set(), field
        assert signals(world, "TP1") == set(), field


def test_busy_queue_of_a_sleeper_is_no_demand() -> None:
    world = World(2)
    world["TP0"].does(cpu=0.02, wait=0.12)
    world["TP1"].does(cpu=0.04, wait=0.9, state="R")
    world.run(20)
    assert signals(world, "TP0") == set()
    assert signals(world, "TP1") == {"cpu"}


def test_one_burst_in_five_seconds_is_no_work() -> None:
    world = World(1, names=["TP0"])
    for second in range(30):
        world["TP0"].cpu = 0.2 if second % 5 == 0 else 0.0
        world.run(1)
        assert second < 6 or signals(world) == set()


def test_falling_memory_is_no_growth() -> None:
    world = World(1, names=["TP0"])
    world["TP0"].mapped = 50 * MB
    world.run(10)
    world["TP0"].mapped = -30 * MB
    world.run(5)
    assert "bytes" not in signals(world)


def test_mark_is_as_old_as_the_last_byte_not_the_window() -> None:
    world = World(1, names=["TP0"])
    world["TP0"].read = 500 * MB
    world.run(10)
    world["TP0"].read = 0
    world.run(5)
    mark = next(m for m in clock(world).marks if m.signal == "bytes")
    assert world.t - mark.t >= 4.5


def test_silence_that_ended_is_remembered_but_not_one_of_a_stopped_process() -> None:
    world = World(2)
    for rank in world.ranks:
        rank.compute()
    world.run(5)
    world["TP0"].idle()
    world["TP1"].does(state="T", cpu=0.0)
    world.run(20)
    for rank in world.ranks:
        rank.compute()
    world.run(3)
    assert clock(world, "TP0").longest_quiet_s > 15
    assert clock(world, "TP1").longest_quiet_s < 5


def test_same_events_same_clocks() -> None:
    epoch, events = recording("gpu-tp2-stop1")
    one, two = Store(epoch), ActivityTracker()
    for event in list(events)[:400]:
        snapshot = one.step(event)
        assert two.observe(event, snapshot) == snapshot.clocks
