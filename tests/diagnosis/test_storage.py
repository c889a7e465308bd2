"""Hung storage that another thread than the main one waits for; and storage that is only slow."""

from __future__ import annotations

import pytest

from sgmon.model import BlockedCall, FdTarget, Role, Shards, ThreadWait
from tests.diagnosis.test_slow_but_alive import never_bad
from tests.diagnosis.world import MB, Rank, World

FUSE = ("/mnt/models", "fuse.bindfs")
SHARDS = Shards(("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"), 0, *FUSE)


def asleep(rank: Rank, seconds: float, **what: object) -> None:
    """Its loader thread sleeps on storage for so long; the main thread on a futex."""
    fields = {"state": "D", "wchan": "folio_wait_bit_common", "call": BlockedCall(-1, ""), **what}
    rank.gloo_wait()
    rank.does(thread_waits=(ThreadWait(rank.pid + 1000, asleep_s=seconds, **fields),))


def hang(world: World, seconds: int, *ranks: Rank, **what: object) -> None:
    for second in range(seconds):
        for rank in ranks:
            asleep(rank, float(second), **what)
        world.run(1)


def test_a_loader_thread_in_a_page_fault() -> None:
    world = World(2).to("weights")
    for rank in world.ranks:
        rank.does(read=300 * MB, cpu=0.3, state="R", wchan="0", shards=SHARDS)
    world.run(20)
    world["TP0"].gloo_wait()
    world.log("TP0: Load weight end. elapsed=8.00 s, type=LlamaForCausalLM, avail mem=100.00 GB, mem usage=16.00 GB.")
    hang(world, 70, world["TP1"])
    assert (world.verdict.state, world.verdict.rule, world.verdict.odd_ranks) == ("stalled", "storage", ("TP1",))
    assert (
        "model-00002-of-00002.safetensors or 1 other mapped shard on /mnt/models (fuse.bindfs)"
        in world.verdict.headline
    )
    assert any("its thread 1102" in e.text for e in world.verdict.evidence)
    assert world.verdict.next[1].command == "cat /proc/102/task/1102/stack"
    assert world.since("suspect", 20) <= 35
    assert 55 <= world.since("stalled", 20) <= 65


@pytest.mark.parametrize("role", [Role.IMPORTING, Role.WORKER])
def test_an_interruptible_wait_for_a_path(role: Role) -> None:
    """FUSE: state S. The file is the path of the call; no shard is mapped yet."""
    world = World(1)
    world[0].does(role=role, cpu=0.9, state="R", wchan="0")
    world.run(20)
    call = BlockedCall(257, "openat", target="/mnt/models/config.json")
    what = {"state": "S", "wchan": "request_wait_answer", "call": call, "target": call.target}
    hang(world, 70, world[0], mount=FUSE[0], fstype=FUSE[1], **what)
    assert (world.verdict.state, world.verdict.rule) == ("stalled", "storage")
    assert "/mnt/models/config.json on /mnt/models (fuse.bindfs)" in world.verdict.headline
    assert world.since("suspect", 20) <= 35
    assert world.since("stalled", 20) <= 66


def test_a_main_thread_in_an_interruptible_wait_of_an_old_recording() -> None:
    world = World(1).to("weights")
    world[0].does(read=300 * MB, cpu=0.3, state="R", wchan="0")
    world.run(20)
    world[0].idle()
    world[0].does(wchan="request_wait_answer", shards=SHARDS)
    world.run(70)
    assert (world.verdict.state, world.verdict.rule) == ("stalled", "storage")


def test_threads_that_wait_again_and_again_while_bytes_come() -> None:
    world = World(2).to("weights")
    for second in range(200):
        for rank in world.ranks:
            asleep(rank, float(second % 20), state="D")
            rank.does(mapped=1 * MB, shards=SHARDS)
        world.run(1)
    never_bad(world)
    assert "suspect" not in world.states()


def test_a_forgotten_thread_does_not_accuse_a_rank_that_works() -> None:
    world = World(2).to("graphs")
    for second in range(120):
        asleep(world["TP1"], float(second))
        for rank in world.ranks:
            rank.does(cpu=1.0, state="R", wchan="0", anon=8 * MB)
        world.run(1)
    never_bad(world)


def test_storage_that_comes_back() -> None:
    world = World(1).to("weights")
    world[0].does(read=300 * MB, cpu=0.3, state="R", wchan="0", shards=SHARDS)
    world.run(20)
    hang(world, 45, world[0])
    assert world.verdict.state == "suspect"
    world[0].does(read=300 * MB, cpu=0.3, state="R", wchan="0", thread_waits=())
    world.run(5)
    assert world.verdict.state == "progressing"


def reads(rank: Rank, pos: int) -> None:
    """It is so far in the file that it reads with read(2)."""
    rank.does(fds=(FdTarget(12, "/mnt/models/model.bin", "weights", pos),))


def test_how_far_a_file_was_read_stands_beside_the_wait() -> None:
    world = World(1).to("weights")
    for second in range(20):
        reads(world[0], second * 100 * MB)
        world[0].does(read=100 * MB, rchar=100 * MB, cpu=0.3, state="R", wchan="0")
        world.run(1)
    call = BlockedCall(0, "read", target="/mnt/models/model.bin")
    what = {"state": "D", "wchan": "folio_wait_bit_common", "call": call, "target": call.target}
    hang(world, 70, world[0], mount=FUSE[0], fstype=FUSE[1], **what)
    assert (world.verdict.state, world.verdict.rule) == ("stalled", "storage")
    facts = [one.text for one in world.verdict.evidence if one.signal == "fd"]
    assert facts and "is at 1.8 GiB of model.bin, and no further for 1m" in facts[0]


def test_a_position_alone_is_no_life_and_one_that_never_moved_says_nothing() -> None:
    """What is mapped does not move it; and a file that is read again and again from the page cache is no progress of
    a start whose counters stand."""
    world = World(1, gpu=False).to("weights")
    reads(world[0], 0)
    world[0].gloo_wait()
    world.run(60)
    assert world.verdict.state == "stalled"
    assert not any(one.signal == "fd" for one in world.verdict.evidence)
    moving = World(1, gpu=False).to("weights")
    moving[0].gloo_wait()
    for second in range(60):
        reads(moving[0], second * 1000)
        moving.run(1)
    assert moving.verdict.state == "stalled"
