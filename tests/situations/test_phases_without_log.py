"""The phases on the screen where no log can be read: those that stacks, processes and the port show."""

from __future__ import annotations

from msgspec.structs import replace

from tests.diagnosis.world import World
from widgets.phases import DONE, NOT_OURS, NOT_YET, NOW, UNKNOWN, rank_rows


def test_a_server_that_is_ready_without_a_log_is_not_at_its_first_phase() -> None:
    world = World(tp=1)
    world.run(30)
    world.answers(200)
    world.run(10)
    assert world.verdict.state == "ready"
    (row,) = rank_rows(world.store.snapshot)
    assert set(row.cells) == {DONE} and row.last == "no log is read"


def test_what_has_no_log_and_was_there_before_sgmon_is_in_an_unknown_phase() -> None:
    """It may load, or have been ready for days."""
    world = World(tp=2).run(3)
    world["TP0"].does(state="T")
    world["TP1"].does(state="T")
    world.run(3)
    assert (world.verdict.state, world.verdict.phase) == ("stopped", "")
    ranks, launcher = rank_rows(world.store.snapshot)
    assert set(ranks.cells) == {UNKNOWN, NOT_OURS} == set(launcher.cells)
    assert ranks.last == launcher.last == "phase unknown: no log"


def test_a_rank_is_in_the_phase_that_its_stack_shows() -> None:
    snapshot = replace(World(tp=1).run(2).store.snapshot, phase="kv_cache", phase_source="stack")
    (row,) = rank_rows(snapshot)
    at = row.cells.index(NOW)
    assert at == 3 and set(row.cells[:at]) == {DONE} and set(row.cells[at + 1 :]) == {NOT_YET}


def test_the_launcher_of_several_ranks_serves_where_the_port_says_so() -> None:
    world = World(tp=2)
    world.run(30)
    world.answers(200)
    world.run(10)
    ranks, launcher = rank_rows(world.store.snapshot)
    assert launcher.last == "serves"
    assert NOT_YET not in {*ranks.cells, *launcher.cells}
