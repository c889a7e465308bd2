"""How far the weight load is, how fast, and when it ends: bytes that ranks share are not counted once a rank."""

from __future__ import annotations

import pytest

from sgmon.analyse.diagnosis.context import context_of
from sgmon.analyse.diagnosis.load import Load, load_of
from sgmon.model import ServerArgs
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


def test_what_was_read_before_the_load_says_nothing_of_its_speed() -> None:
    """Beside a real vLLM "6m02s to go" of a load of 7 s: the mean of ten seconds had eight of the imports in it."""
    world = World(1, gpu=False)
    world.host["model_bytes"] = 8800 * MB
    world[0].does(state="R", cpu=1.0, read=0.5 * MB, rchar=0.5 * MB)
    world.run(20).to("weights")
    world[0].does(read=1400 * MB, mapped=1400 * MB)
    world.run(2)
    first = load(world)
    assert (first.eta_s, first.speed) == (None, None), "it is too early"
    world.run(3)
    seen = load(world)
    assert seen.speed == pytest.approx(1400 * MB, rel=0.1)
    assert seen.eta_s == pytest.approx((8800 - seen.done_bytes / MB) / 1400, rel=0.1)
    assert not any("to go" in verdict.headline for t, verdict in world.history if t < 22.5)


def test_dummy_weights_are_read_from_no_file() -> None:
    """Seen live: "0 %, 4m11s to go", by what Python maps meanwhile."""
    args = ServerArgs(model_path="/models/m", load_format="dummy")
    world = World(1, args=args, gpu=False)
    world.host["model_bytes"] = 2000 * MB
    world.run(3).to("weights").run(1)
    world[0].does(state="R", cpu=1.0, mapped=8 * MB)
    world.run(20)
    seen = load(world)
    assert (seen.share, seen.eta_s, seen.done_bytes) == (None, None, None)
    assert "to go" not in world.verdict.headline and "%" not in world.verdict.headline
    facts = [one.text for one in world.verdict.evidence]
    assert "time to go unknown: dummy weights: no file is read" in facts


def test_the_bar_of_the_draft_model_is_another_one() -> None:
    world = loading(2, mapped=50 * MB)
    world.log("Loading safetensors checkpoint shards: 100% Completed | 24/24 [00:20<00:00, 1.20it/s]")
    world.everywhere(
        "Load weight end. elapsed=8.00 s, type=LlamaForCausalLM, avail mem=100.00 GB, mem usage=16.00 GB."
    )
    world.everywhere("Load weight begin. avail mem=100.00 GB")
    world.run(4)
    assert world.store.snapshot.phase == "draft_weights"
    assert load(world).by != "bar", "that one is full since the target's load"
