"""The log goes to /dev/null or a pipe: the phase comes from stacks, and sgmon takes them by itself."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.model import Event, Role, ServerReading, Snapshot, Verdict
from sgmon.watch.auto_stacks import APART_S, AutoStacks
from tests.diagnosis.world import World

PROFILE = (
    "profile_max_num_token@sglang/srt/model_executor/model_runner.py",
    "ModelRunner.init_memory_pool@sglang/srt/model_executor/model_runner.py",
)
CAPTURE = (
    "capture_one_batch_size@sglang/srt/model_executor/cuda_graph_runner.py",
    "CudaGraphRunner.capture@sglang/srt/model_executor/cuda_graph_runner.py",
    "ModelRunner.init_device_graphs@sglang/srt/model_executor/model_runner.py",
)


def lost(tp: int = 2) -> World:
    world = World(tp, gpu=False)
    for rank in world.ranks:
        rank.compute()
    return world.run(5)


def test_the_phase_is_the_one_of_the_stacks() -> None:
    world = lost()
    assert world.verdict.phase == "dist_init"
    for rank in world.ranks:
        world.dump(rank.name, *PROFILE, samples=1)
    world.run(5)
    assert world.verdict.phase == "kv_cache"
    said = [e.text for e in world.verdict.evidence if e.signal == "log"]
    assert said == ["no log can be read; the phase is the one that the stacks show"]


def test_an_empty_log_behind_another_program_says_so() -> None:
    """conda run collects the output until the end; sed in a pipeline passes it on by the block."""
    world = World(2, gpu=False)
    server = world.store.snapshot.server
    assert server is not None
    world.step(Event(0.0, "server", ServerReading(replace(server, log_relay="conda (pid 7)"))))
    world.raw("")
    world.run(3)
    said = [e.text for e in world.verdict.evidence if e.signal == "log"]
    assert said == ["the log is empty: the output goes through conda (pid 7), which has passed nothing on yet"]


def test_an_old_stack_is_how_far_it_has_come() -> None:
    world = lost()
    for rank in world.ranks:
        world.dump(rank.name, *PROFILE, samples=1)
    world.run(60)
    assert world.verdict.phase == "kv_cache"
    world.answers(503)
    world.run(5)
    assert world.verdict.phase == "warmup"


def test_ranks_are_in_phases_of_their_own() -> None:
    world = lost()
    world.dump("TP0", *CAPTURE, samples=1)
    world.dump("TP1", *PROFILE, samples=1)
    world.run(2)
    assert world.verdict.phase == "kv_cache"


def at(world: World, t: float, state: str = "progressing", since_t: float = 0.0) -> Snapshot:
    return replace(world.store.snapshot, t=t, verdict=Verdict(state, "", since_t=since_t))


def test_stacks_are_taken_where_the_log_is_lost() -> None:
    world, evidence = lost(), AutoStacks()
    assert evidence.due(at(world, 10)) == ""
    assert evidence.due(at(world, 21)) == "auto: no log"
    assert evidence.due(at(world, 40)) == ""
    assert evidence.due(at(world, 21 + APART_S)) == "auto: no log"
    assert evidence.due(at(world, 400, "ready")) == ""


def test_once_a_suspicion_and_a_minute_apart() -> None:
    world, evidence = lost().to("weights"), AutoStacks()
    assert evidence.due(at(world, 100)) == ""
    assert evidence.due(at(world, 120, "suspect", 104)) == "auto: suspect"
    assert evidence.due(at(world, 135, "stalled", 104)) == ""
    assert evidence.due(at(world, 200, "stalled", 104)) == ""
    assert evidence.due(at(world, 230, "progressing", 225)) == ""
    assert evidence.due(at(world, 250, "suspect", 234)) == "auto: suspect"
    assert evidence.due(at(world, 300, "suspect", 284)) == "", "less than a minute after the last"
    assert evidence.due(at(world, 311, "suspect", 284)) == "auto: suspect"
    assert evidence.due(at(world, 560, "stalled", 284)) == "auto: stalled", "renewed while it lasts"


def test_the_stack_of_a_rank_that_never_moved_again_stays_true() -> None:
    world = World(2, gpu=False).to("graphs")
    for rank in world.ranks:
        rank.idle()
    world.run(16)
    world.dump("TP0", "barrier@torch/distributed/distributed_c10d.py", "capture_one@sglang/srt/runner.py")
    world.dump("TP1", "acquire_both@sglang/srt/mine.py", "forward@sglang/srt/mine.py")
    world.run(20)
    assert (world.verdict.state, world.verdict.odd_ranks) == ("stalled", ("TP1",))
    world.run(600)
    assert (world.verdict.state, world.verdict.odd_ranks) == ("stalled", ("TP1",))


def test_a_long_watch_without_log_and_stacks_names_no_phase() -> None:
    """The ranks were seen to import and got their titles: they had been "distributed initialisation" for good."""
    world = World(2, gpu=False)
    for rank in world.ranks:
        rank.does(role=Role.IMPORTING)
        rank.compute()
    world.run(8)
    for rank in world.ranks:
        rank.does(role=Role.WORKER)
    world.run(4)
    assert world.verdict.phase == "dist_init"
    world.run(60)
    assert world.verdict.state in ("progressing", "slow") and world.verdict.phase == ""
    assert world.verdict.headline.startswith("unknown phase: ")
    assert [gap.remedy for gap in world.verdict.missing if gap.signal == "phase"] == [
        "press D, or: sgmon stacks; or give the file with --log"
    ]
    for rank in world.ranks:
        world.dump(rank.name, *PROFILE, samples=1)
    world.run(5)
    assert world.verdict.phase == "kv_cache"
    assert not [gap for gap in world.verdict.missing if gap.signal == "phase"]
