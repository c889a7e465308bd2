"""How far the weight load is, how fast, and when it ends: bytes that ranks share are not counted once a rank."""

from __future__ import annotations

import pytest

from sgmon.analyse.diagnosis.context import context_of
from sgmon.analyse.diagnosis.load import Load, load_of
from tests.diagnosis.world import MB, World


def load(world: World) -> Load:
    found = load_of(context_of(world.store.snapshot))
    assert found is not None
    return found


def loading(tp: int, **does: float) -> World:
    world = World(tp, gpu=False)
    world.host["model_bytes"] = 2000 * MB
    for rank in world.ranks:
        rank.does(state="D", wchan="folio_wait_bit_common", cpu=0.2)
    world.run(3).to("weights").run(1)
    for rank in world.ranks:
        rank.does(**does)
    return world.run(20)


def test_what_every_rank_maps_from_the_page_cache_counts_once() -> None:
    """Measured against the bar of a slow disk: four ranks gave four times the speed."""
    seen = load(loading(4, mapped=10 * MB))
    assert seen.done_bytes == pytest.approx(200 * MB, rel=0.1)
    assert seen.speed == pytest.approx(10 * MB, rel=0.1)
    assert seen.eta_s == pytest.approx(180, rel=0.1)


def test_what_each_rank_reads_from_the_disk_is_a_part() -> None:
    seen = load(loading(4, read=10 * MB, mapped=12 * MB))
    assert seen.done_bytes == pytest.approx(800 * MB, rel=0.1)
    assert seen.speed == pytest.approx(40 * MB, rel=0.1)
    assert seen.eta_s == pytest.approx(30, rel=0.1)


def test_the_bar_has_a_clock_of_its_own_that_ran_before_the_watch() -> None:
    world = loading(2, mapped=50 * MB)
    world.log("Loading safetensors checkpoint shards:  50% Completed | 12/24 [10:00<10:00, 50.00s/it]")
    world.run(12)
    seen = load(world)
    assert (seen.by, seen.share) == ("bar", 0.5)
    assert seen.eta_s == pytest.approx(612, abs=3)
    assert "10m" in world.verdict.headline
