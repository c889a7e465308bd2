"""What moves is said of the rank that moves, and of nothing else."""

from __future__ import annotations

from tests.diagnosis.world import World


def quiet(world: World) -> World:
    for rank in world.ranks:
        rank.does(wchan="0", cpu=0.0)
    return world


def test_a_line_of_one_rank_is_the_progress_of_that_one() -> None:
    world = quiet(World(2, gpu=False)).to("dist_init").run(7)
    world.log("TP1: Init torch distributed ends. elapsed=0.87 s, mem usage=0.97 GB", "TP0: some words")
    world.run(1)
    assert "TP0-1 make progress (TP0: log line 4)" in world.verdict.headline


def test_different_things_are_said_of_those_who_do_them() -> None:
    world = quiet(World(4, gpu=False)).to("dist_init").run(7)
    for rank in world.ranks[1:]:
        rank.does(cpu=0.9, state="R")
    world.ranks[1].does(cpu=0.5)
    world.log("TP0: some words")
    world.run(4)
    said = world.verdict.headline
    assert "TP0 makes progress (log line 5), TP1-3 compute (TP1: CPU " in said


def test_a_rank_that_was_first_seen_just_now_is_not_said_to_do_nothing() -> None:
    """Whether it is active is not known yet."""
    world = quiet(World(2, gpu=False)).to("dist_init")
    world.log("the launcher's own words")
    world.run(1)
    facts = " / ".join(fact.text for fact in world.verdict.evidence)
    assert "nothing" not in world.verdict.headline + facts
    busy = quiet(World(2, gpu=False)).run(2)
    assert busy.verdict.rule == "moving" and busy.verdict.confidence < 0.95
    assert "have shown no activity yet" in busy.verdict.headline
