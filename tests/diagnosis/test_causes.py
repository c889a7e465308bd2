"""The cause book inside of the verdict: the surest entry that speaks of now."""

from __future__ import annotations

import pytest

from sgmon.analyse.diagnosis.causes import with_cause
from sgmon.model import CauseHit, CauseSource, Snapshot, Verdict
from tests.diagnosis.world import World


def causes(world: World) -> list[str]:
    return [str(e.value) for e in world.verdict.evidence if e.signal == "cause"]


def test_the_first_cause_of_a_crash() -> None:
    world = World(1).to("kv_cache")
    world.log(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.72 GiB. GPU 0 has a total capacity of 139.80 GiB"
    )
    world[0].does(gone=True, state="X", exit_code=1)
    world.run(3)
    assert (world.verdict.state, causes(world)) == ("crashed", ["cuda-out-of-memory"])
    assert any("nvidia-smi" in step.command for step in world.verdict.next)
    assert world.verdict.next[0].command.startswith("sed -n")


def hung_in_a_stale_lock(world: World) -> None:
    for rank in world.ranks:
        rank.idle()
    world.run(16)
    for rank in world.ranks:
        world.dump(
            rank.name,
            "wait@torch/utils/file_baton.py",
            "_jit_compile@torch/utils/cpp_extension.py",
            "load@torch/utils/cpp_extension.py",
        )
    world.run(20)


def test_a_cause_from_stacks() -> None:
    world = World(2, gpu=False).to("graphs")
    hung_in_a_stale_lock(world)
    assert (world.verdict.state, causes(world)) == ("stalled", ["stale-jit-lock"])
    assert len(world.verdict.evidence) <= 5
    assert len({e.signal for e in world.verdict.evidence} - {"cause"}) >= 2


def test_a_cause_from_stacks_is_over_with_the_next_sign_of_life() -> None:
    world = World(2, gpu=False).to("graphs")
    hung_in_a_stale_lock(world)
    for rank in world.ranks:
        rank.compute()
    world.run(10)
    assert (world.verdict.state, causes(world)) == ("progressing", [])
    for rank in world.ranks:
        rank.gloo_wait()
    world.run(50)
    assert (world.verdict.state, causes(world)) == ("stalled", [])


def test_an_entry_that_explains_slowness_explains_no_stall() -> None:
    world = World(2, gpu=False).to("weights")
    for rank in world.ranks:
        rank.idle()
    world.run(16)
    for rank in world.ranks:
        world.dump(
            rank.name, "_repack@sglang/srt/layers/quantization/mxfp4.py", "process_weights_after_loading@sglang/x.py"
        )
    world.run(30)
    assert world.store.snapshot.causes[0].slow
    assert (world.verdict.state, causes(world)) == ("stalled", [])


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (CauseSource("ras", t=99.0), []),
        (CauseSource("ras", t=None), []),
        (CauseSource("ras", t=100.0), ["rank-behind"]),
        (CauseSource("stack", "TP1", 99.0), []),
        (CauseSource("log"), ["rank-behind"]),
        (CauseSource("process", "TP1"), ["rank-behind"]),
    ],
)
def test_a_cause_read_before_the_last_sign_of_life_is_over(source: CauseSource, shown: list[str]) -> None:
    hit = CauseHit("rank-behind", "a rank is behind", 0.85, read_from=(CauseSource("log"), source))
    verdict = with_cause(Snapshot(causes=(hit,)), Verdict("stalled", "stalled", since_t=100.0))
    assert [e.value for e in verdict.evidence if e.signal == "cause"] == shown
