"""Hangs that no recording holds: who is blamed, and how long it takes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.model import RasCommunicator, RasRank, RasReading, Role, ServerArgs
from tests.diagnosis.world import MB, Shards, World

LOADED = "Load weight end. elapsed=8.00 s, type=LlamaForCausalLM, avail mem=100.00 GB, mem usage=16.00 GB."


def working(world: World) -> None:
    for rank in world.ranks:
        rank.compute()
        rank.does(util=30, power=150, wobble=20)


def test_one_rank_missing_while_seven_spin_in_nccl() -> None:
    world = World(8)
    working(world)
    world.to("graphs").run(20)
    for rank in world.ranks:
        rank.spin(164)
    world["TP5"].idle()
    world.run(60)
    assert world.verdict.state == "stalled"
    assert world.verdict.odd_ranks == ("TP5",)
    assert world.verdict.headline.startswith(
        "TP5 is missing from the collective in the graph capture; 7 other ranks wait for it"
    )
    assert world.since("suspect", 20) <= 20
    assert world.since("stalled", 20) <= 35
    assert world.verdict.next[0].command == "py-spy dump --nonblocking --pid 106"


def test_all_ranks_spin() -> None:
    world = World(4)
    working(world)
    world.to("dist_init").run(10)
    for rank in world.ranks:
        rank.spin()
    world.run(60)
    assert world.verdict.state == "stalled"
    assert world.verdict.odd_ranks == ()
    assert "all 4 ranks spin in a collective" in world.verdict.headline


def test_mismatch_named_by_ras() -> None:
    world = World(2)
    working(world)
    world.to("graphs").run(10)
    for rank in world.ranks:
        rank.spin()
    ranks = (RasRank(0, pid=101, counts=(("AllReduce", 51),)), RasRank(1, pid=102, counts=(("AllReduce", 50),)))
    comm = RasCommunicator("0xabc", 2, ranks, "MISMATCH", "AllReduce", behind=(1,))
    reading = RasReading("127.0.0.1:28028", "ok", communicators=(comm,), unequal_unchanged=True)
    world.store.snapshot = replace(world.store.snapshot, ras=reading)
    world.run(50)
    assert world.verdict.state == "stalled"
    assert world.verdict.odd_ranks == ("TP1",)
    assert any(e.signal == "ras" for e in world.verdict.evidence)


@pytest.mark.parametrize("wchan", ["futex_do_wait", "hrtimer_nanosleep", "anon_pipe_read"])
def test_rank_that_still_imports_is_missing_from_the_rendezvous(wchan: str) -> None:
    world = World(8)
    for rank in world.ranks:
        rank.does(role=Role.IMPORTING, cpu=0.9, state="R", wchan="0")
    world.run(20)
    for rank in world.ranks:
        if rank.name != "TP5":
            rank.does(role=Role.WORKER)
            rank.gloo_wait()
    world["TP0"].store_wait()
    world["TP5"].idle()
    world["TP5"].wchan = wchan
    world.log("TP0: Init torch distributed begin.")
    world.run(60)
    assert world.verdict.state == "stalled"
    assert world.verdict.odd_ranks == ("TP5",)
    assert "TP5 is stuck importing modules" in world.verdict.headline
    assert world.since("suspect", 20) <= 20
    assert world.since("stalled", 20) <= 36


def test_dead_storage_of_one_rank_waits_for_the_read_ahead_quantum() -> None:
    world = World(8).to("weights")
    for rank in world.ranks:
        rank.does(state="D", wchan="folio_wait_bit_common", read=300 * MB, cpu=0.3)
        rank.does(shards=Shards(("model-00003-of-00064.safetensors",), 0, "/nfs", "nfs4"))
    world.run(20)
    for rank in world.ranks:
        rank.gloo_wait()
    world["TP5"].does(state="D", wchan="folio_wait_bit_common", cpu=0.0)
    world.log(*(f"{r.name}: {LOADED}" for r in world.ranks if r.name != "TP5"))
    world.run(90)
    assert world.verdict.state == "stalled"
    assert world.verdict.odd_ranks == ("TP5",)
    assert world.verdict.phase == "weights"
    assert "model-00003-of-00064.safetensors on /nfs (nfs4)" in world.verdict.headline
    assert world.since("suspect", 20) <= 35
    assert 58 <= world.since("stalled", 20) <= 65


def test_deadlock_of_a_single_rank() -> None:
    world = World(1).to("kv_cache")
    world[0].compute()
    world.run(10)
    world[0].does(state="S", wchan="futex_do_wait", cpu=0.0)
    world.run(60)
    assert world.states() == ["progressing", "suspect", "stalled"]
    assert world.since("suspect", 10) <= 17
    assert world.since("stalled", 10) <= 32


def test_gloo_barrier_without_gpu_or_stacks_blames_by_milestone() -> None:
    world = World(3, gpu=False).to("weights")
    for rank in world.ranks:
        rank.does(read=100 * MB, cpu=0.3, state="R", wchan="0")
    world.run(10)
    for rank in world.ranks:
        rank.gloo_wait()
    world.log(*(f"{r.name}: {LOADED}" for r in world.ranks if r.name != "TP1"))
    world.run(60)
    assert world.verdict.state == "stalled"
    assert world.verdict.odd_ranks == ("TP1",)
    assert any("gives up after 8m00s" in e.text for e in world.verdict.evidence)


def test_a_rank_that_ended_a_phase_hangs_in_the_next() -> None:
    """Seen on a real server: a deadlock before TP1's "Load weight begin" was said to be in the phase before."""
    world = World(2, gpu=False).to("dist_init")
    world.everywhere("Init torch distributed ends. elapsed=0.11 s, mem usage=0.00 GB")
    world.log("TP0: Load weight begin. avail mem=130.00 GB", f"TP0: {LOADED}")
    for rank in world.ranks:
        rank.gloo_wait()
    world.run(60)
    assert (world.verdict.state, world.verdict.odd_ranks) == ("stalled", ("TP1",))
    assert world.verdict.phase == "weights"
    assert "in the weight load; 1 other rank waits for it" in world.verdict.headline
    assert any("gives up after 8m00s" in e.text for e in world.verdict.evidence)


def test_stacks_tell_the_odd_rank() -> None:
    world = World(2, gpu=False).to("graphs")
    for rank in world.ranks:
        rank.compute()
    world["TP1"].does(state="S", wchan="futex_do_wait", cpu=0.0)
    world.run(62)
    assert world.verdict.state == "suspect"
    world.dump("TP0", "barrier@torch/distributed/distributed_c10d.py", "capture_one@sglang/srt/runner.py")
    world.dump("TP1", "acquire_both@sglang/srt/mine.py", "forward@sglang/srt/mine.py")
    world.run(5)
    assert world.verdict.state == "stalled"
    assert world.verdict.odd_ranks == ("TP1",)
    assert any(e.signal == "stack" and "acquire_both" in e.text for e in world.verdict.evidence)


def test_stale_lock_of_a_killed_build() -> None:
    world = World(2).to("graphs")
    for rank in world.ranks:
        rank.idle()
        rank.does(waits_for_lock="/root/.cache/torch_extensions/lock")
    world.run(60)
    assert world.verdict.state == "stalled"
    assert world.verdict.rule == "stale-lock"
    assert world.verdict.next[0].command == "rm /root/.cache/torch_extensions/lock"


def test_log_reader_that_does_not_read() -> None:
    world = World(1).to("weights")
    world[0].compute()
    world.run(5)
    world[0].does(state="S", wchan="anon_pipe_write", cpu=0.0)
    world.run(60)
    assert world.verdict.state == "stalled"
    assert "the reader of its pipe does not read" in world.verdict.headline


def test_nccl_between_nodes_that_have_met_is_no_missing_node() -> None:
    args = ServerArgs(tp=4, nnodes=2, dist_init_addr="10.0.0.1:5000")
    world = World(2, args=args).to("dist_init")
    world.log("[Gloo] Rank 0 is connected to 3 peer ranks. Expected number of connected peer ranks is : 3")
    for rank in world.ranks:
        rank.spin()
    world.run(60)
    assert world.verdict.state == "stalled"
    assert "this node's at least" in world.verdict.headline


def test_without_counters_silence_is_never_stalled() -> None:
    world = World(2, gpu=False).to("graphs")
    for rank in world.ranks:
        rank.does(
            cpu_s=None,
            wait_s=None,
            read_bytes=None,
            rchar_bytes=None,
            rss_anon_bytes=None,
            rss_file_bytes=None,
            wchan=None,
        )
    world.run(400)
    assert "stalled" not in world.states()
    assert world.verdict.state in ("suspect", "unknown")


def test_two_kinds_of_evidence_stand_under_every_stalled() -> None:
    world = World(1).to("weights")
    world[0].idle()
    world.run(60)
    assert world.verdict.state == "stalled"
    assert len({e.signal for e in world.verdict.evidence}) >= 2
    assert 2 <= len(world.verdict.evidence) <= 5
