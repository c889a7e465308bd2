"""What looks dead and is not: none of these may ever be called stalled."""

from __future__ import annotations

import pytest

from sgmon.model import Baseline, Event, Role, ServerArgs, Usual, UsualPhase
from tests.diagnosis.world import MB, Compiler, FdTarget, Rank, World

BAD = {"stalled", "stopped", "crashed"}


def never_bad(world: World) -> None:
    assert not BAD & set(world.states()), [(t, v.state, v.headline) for t, v in world.history if v.state in BAD]


def test_first_captured_shape_compiles_for_84_s_in_silence() -> None:
    world = World(2).to("graphs")
    world["TP0"].does(child_cpu=1.0, wchan="anon_pipe_read", compilers=(Compiler(900, "cicc", "norm.cu", 1.0),))
    world["TP1"].idle()
    world["TP1"].does(waits_for_lock="/root/.cache/flashinfer/norm.lock", lock_holder=101)
    world.run(300)
    assert world.states() == ["progressing"]
    assert world.verdict.headline == "graph capture: TP0 compiles kernels; TP1 waits for it"


def test_compilers_of_another_program_hold_the_lock() -> None:
    world = World(2).to("graphs")
    for rank in world.ranks:
        rank.idle()
        rank.does(waits_for_lock="/root/.cache/flashinfer/norm.lock", lock_holder=7777)
    world.run(300)
    assert world.verdict.state == "waiting-by-design"
    assert "7777" in world.verdict.headline
    never_bad(world)


def test_slow_disk_looks_dead_for_one_read_ahead() -> None:
    world = World(1).to("weights")
    world.host["read_ahead_bytes"] = 8 << 20
    world[0].does(state="D", wchan="folio_wait_bit_common")
    for _ in range(6):
        world[0].read = 8 * MB
        world.run(1)
        world[0].read = 0
        world.run(40)
    never_bad(world)
    assert set(world.states()[1:]) <= {"slow", "suspect", "progressing"}
    assert world.states().count("suspect") <= 2


def test_a_disk_that_delivers_little_is_named_and_one_that_delivers_is_not() -> None:
    said = {}
    for read in (0.6 * MB, 40 * MB):
        world = World(1).to("weights")
        world[0].idle()
        world[0].read = read
        world.run(30)
        said[read] = world.verdict
    slow, fast = said.values()
    assert (slow.state, fast.state) == ("slow", "progressing")
    assert "the disk delivers only" in slow.headline + str(slow.evidence)
    assert "the disk" not in fast.headline


def test_repacking_experts_for_eight_minutes() -> None:
    world = World(3).to("weights")
    for rank in world.ranks:
        rank.does(read=100 * MB, state="R", cpu=0.5)
    world.run(10)
    for rank in world.ranks:
        rank.gloo_wait()
    world["TP2"].compute()
    world.run(200)
    assert world.verdict.state == "progressing"
    world.run(60)
    world.dump("TP2", "_repack@sglang/srt/layers/quantization/mxfp4.py", "process_weights_after_loading@sglang/x.py")
    world.run(222)
    never_bad(world)
    assert world.verdict.state == "slow"
    assert "the stacks show work" in world.verdict.headline


def test_load_from_the_page_cache_reads_no_byte() -> None:
    world = World(1).to("weights")
    world[0].compute()
    for done in range(9):
        world.log(
            f"Loading safetensors checkpoint shards:  {done * 11}% Completed | {done}/9 [00:01<00:09,  1.18s/it]"
        )
        world.run(10)
    assert world.states() == ["progressing"]


def test_mmap_on_fuse_moves_only_rss() -> None:
    world = World(1).to("weights")
    world[0].does(state="D", wchan="folio_wait_bit_common", mapped=17 * MB)
    world.run(120)
    assert world.states() == ["progressing"]


def test_starved_of_cpu_is_slow() -> None:
    world = World(1)
    world[0].does(role=Role.IMPORTING, state="R", cpu=0.05, wait=0.9)
    world.run(60)
    assert world.verdict.state == "slow"
    assert "is CPU-starved (5% of a core)" in world.verdict.headline


def test_a_crowded_machine_gives_cpu_time_alone_longer() -> None:
    """Four real servers on two cores, load 44: a rank got 2 s of CPU time in the minute of its warm-up request. The
    same with a core for each, and at last on the crowded machine too, is suspect."""
    crowded, free = World(2, gpu=False).to("warmup"), World(2, gpu=False).to("warmup")
    for world in (crowded, free):
        world["TP1"].gloo_wait()
    crowded["TP0"].does(state="R", cpu=0.03, wait=0.9)
    free["TP0"].does(state="R", cpu=0.9)
    crowded.run(200)
    free.run(200)
    assert "suspect" not in crowded.states()
    assert free.verdict.rule == "cpu-alone"
    crowded.run(200)
    assert crowded.verdict.rule == "cpu-alone"


def test_idle_ready_scheduler_burns_a_core() -> None:
    world = World(2).to("ready")
    world.answers(200)
    for rank in world.ranks:
        rank.compute()
    world.run(300)
    assert world.states() == ["progressing", "ready"]


def test_launcher_is_still_for_minutes() -> None:
    world = World(2).to("weights")
    for rank in world.ranks:
        rank.does(read=50 * MB, cpu=0.4, state="D")
    world.run(200)
    assert world.states() == ["progressing"]


def test_own_dump_makes_a_traced_moment() -> None:
    world = World(1).to("graphs")
    world[0].does(state="t", wchan="ptrace_stop", cpu=0.0, tracer_pid=555)
    world.run(3)
    world[0].compute()
    world.run(5)
    never_bad(world)


def test_zombie_main_thread_with_live_threads() -> None:
    world = World(1).to("weights")
    world[0].does(state="Z", threads=2, cpu=0.7)
    world.run(20)
    never_bad(world)


def test_gpu_works_hard_and_evenly_while_the_cpu_sleeps() -> None:
    world = World(2).to("graphs")
    world.run(12)
    for rank in world.ranks:
        rank.does(state="S", wchan="futex_do_wait", cpu=0.0, util=100, power=520, wobble=1.0)
    world.run(200)
    never_bad(world)
    assert world.verdict.state == "progressing"


def test_one_rank_compiles_in_process_while_the_others_spin() -> None:
    world = World(8).to("graphs")
    for rank in world.ranks:
        rank.spin(164)
    world["TP0"].compute()
    world["TP0"].util = 0
    world.run(100)
    never_bad(world)


def test_gate_is_a_wait_by_design() -> None:
    world = World(2, args=ServerArgs(tp=2, gated_launch_port=31999)).to("dist_init")
    world.everywhere("Init torch distributed ends. elapsed=1.00 s, mem usage=1.00 GB")
    for rank in world.ranks:
        rank.idle()
    for i in range(20):
        world.log(f"TP0: Gated launch still waiting for activation. rank=0 elapsed={i}0 s")
        world.run(10)
    assert world.verdict.state == "waiting-by-design"
    assert world.verdict.next[0].command == "curl -X POST http://127.0.0.1:31999/gate/activate"
    never_bad(world)


def test_other_node_late_then_there() -> None:
    args = ServerArgs(tp=4, nnodes=2, dist_init_addr="10.0.0.1:5000")
    world = World(2, args=args).to("dist_init")
    world["TP0"].store_wait()
    world["TP1"].gloo_wait()
    world.run(120)
    assert world.verdict.state == "waiting-by-design"
    assert world.verdict.headline.startswith("node 1 of 2 has not joined at 10.0.0.1:5000")
    for rank in world.ranks:
        rank.compute()
    world.everywhere("Init torch distributed ends. elapsed=120.00 s, mem usage=1.00 GB")
    world.run(10)
    assert world.verdict.state == "progressing"
    never_bad(world)


def test_other_node_missing_for_five_minutes_is_stalled() -> None:
    args = ServerArgs(tp=4, nnodes=2, dist_init_addr="10.0.0.1:5000")
    world = World(2, args=args).to("dist_init")
    world["TP0"].store_wait()
    world["TP1"].gloo_wait()
    world.run(320)
    assert world.states()[-1] == "stalled"
    assert world.verdict.odd_ranks == ("node 1",)


def test_no_flapping_when_bursts_come_every_twenty_seconds() -> None:
    world = World(1).to("weights")
    for _ in range(12):
        world[0].compute()
        world.run(2)
        world[0].idle()
        world.run(18)
    assert world.states().count("suspect") <= 1
    never_bad(world)


def test_ready_replica_spins_while_the_other_still_loads() -> None:
    world = World(2, names=["DP0", "DP1"], args=ServerArgs(dp=2)).to("kv_cache")
    world.log("DP0: max_total_num_tokens=4096, chunked_prefill_size=8192, max_prefill_tokens=16384, context_len=4096")
    world["DP0"].compute()
    world["DP1"].does(read=100 * MB, cpu=0.4, state="D")
    world.run(30)
    assert world.states() == ["progressing"]
    world["DP1"].does(state="S", wchan="futex_do_wait", read=0, cpu=0.0)
    world.run(60)
    assert world.verdict.state == "stalled"
    assert world.verdict.odd_ranks == ("DP1",)


def test_prelaunched_ranks_wait_untitled_for_their_controller() -> None:
    world = World(2, names=["TP0", "TP1"])
    controller = Rank("", 110, role=Role.IMPORTING, state="R", cpu=0.9)
    controller.does(rank_inferred=False, becomes=Role.CONTROLLER)
    for rank in world.ranks:
        rank.does(role=Role.IMPORTING, state="S", wchan="anon_pipe_read")
    world.ranks.append(controller)
    world.run(120)
    never_bad(world)
    assert "suspect" not in world.states()


def test_download_without_a_bar() -> None:
    world = World(1).to("weights")
    world[0].does(
        fds=(FdTarget(33, "/root/.cache/huggingface/hub/models--x/blobs/0a1b2c.incomplete"),), write_bytes=0
    )
    for i in range(60):
        world[0].does(write_bytes=i * 40 * MB)
        world.run(1)
    assert world.states() == ["progressing"]
    world.run(60)
    assert world.verdict.state == "stalled"
    assert "model hub" in world.verdict.headline


def test_log_that_began_before_us_and_a_server_that_answers() -> None:
    world = World(1)
    world.log("Decode batch. #running-req: 1, #token: 200, token usage: 0.00, gen throughput (token/s): 100.0")
    world.answers(200)
    world[0].compute()
    world.run(10)
    assert world.verdict.state == "ready"


@pytest.mark.parametrize(
    ("count", "narrow", "allowed"), [(1, True, False), (4, True, False), (5, True, True), (10, False, False)]
)
def test_few_starts_or_those_of_another_kind_lengthen_no_limit(count: int, narrow: bool, allowed: bool) -> None:
    world = World(1)
    base = Baseline("x", count, narrow, 90.0, 99.0, 25.0, 641)
    world.step(Event(0.0, "baseline", base))
    world.to("weights")
    world[0].does(read=50 * MB, cpu=0.3)
    world.run(10)
    world[0].idle()
    world.run(30)
    assert (world.since("suspect", 10) is None) is allowed


def test_longer_than_finished_starts_is_slow_and_their_silence_is_allowed() -> None:
    world = World(1)
    phases = (UsualPhase("weights", 20.0, 25.0),)
    milestones = (Usual("load_begin", 10.0, 12.0, 40, 10), Usual("kv_alloc", 40.0, 45.0, 233, 10))
    base = Baseline(
        like="the same command",
        count=10,
        narrow=True,
        ready_median_s=90.0,
        ready_p90_s=99.0,
        longest_quiet_s=20.0,
        lines=641,
        milestones=milestones,
        phases=phases,
    )
    world.step(Event(0.0, "baseline", base))
    world.to("weights")
    world[0].does(read=50 * MB, cpu=0.3)
    world.run(30)
    assert world.verdict.state == "progressing"
    assert any("kv alloc is usually line 233" in e.text for e in world.verdict.evidence)
    world.run(90)
    assert world.verdict.state == "slow"
    world[0].idle()
    world.run(25)
    assert world.verdict.state != "suspect"
    world.run(25)
    assert world.verdict.state == "stalled"


def test_sgmon_comes_late_to_a_silent_start_and_does_not_call_it_alive() -> None:
    """The log had been silent for a minute when the watch began, and nothing moves: not known is said, then the hang."""
    world = World(2)
    world.age_s = 60.0
    world.to("graphs")
    for rank in world.ranks:
        rank.gloo_wait()
    world.run(12)
    assert world.verdict.state == "unknown"
    assert "not known yet" in world.verdict.headline
    assert world.verdict.next[0].command == "sgmon status --seconds 40"
    world["TP0"].does(read=50 * MB, state="R", cpu=0.5)
    world["TP1"].does(read=50 * MB, state="R", cpu=0.5)
    world.run(6)
    assert world.verdict.state == "progressing"


def test_a_cpu_quota_is_named_with_its_count_and_its_file() -> None:
    world = World(1).to("weights")
    world.host["throttled"] = 286
    world[0].does(state="R", wchan="0", cpu=0.1, wait=0.9)
    world.run(20)
    assert (world.verdict.state, world.verdict.evidence[0].signal) == ("slow", "cgroup")
    assert "286 times" in world.verdict.evidence[0].text
    assert world.verdict.next[0].command.endswith("/cpu.{max,stat}")
