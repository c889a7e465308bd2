"""An engine in a program of the user's own: no ready line, no HTTP, and by default a log with bars alone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.model import Event, PortReading, ServerReading
from sgmon.watch.auto_stacks import AutoStacks
from tests.diagnosis.world import World
from widgets.phases import DONE, rank_rows

BAR = "\rMulti-thread loading shards: {0}% Completed | {1}/5 [00:00<00:00, 1565.62it/s]"
IDLE = (
    "recv_requests@sglang/srt/managers/scheduler.py",
    "event_loop_normal@sglang/srt/managers/scheduler.py",
    "run_scheduler_process@sglang/srt/managers/scheduler.py",
)
LOADS = ("load_model@sglang/srt/model_loader/loader.py", "run_scheduler_process@sglang/srt/managers/scheduler.py")


def engine(*, in_program: bool = True) -> World:
    world = World(1, gpu=False)
    server = world.store.snapshot.server
    assert server is not None
    world.step(Event(0.0, "server", ServerReading(replace(server, in_program=in_program))))
    world.port = PortReading("127.0.0.1", 0, "skipped", note="its arguments are not known")
    world[0].compute()
    return world.run(3)


def test_an_engine_whose_log_has_bars_alone_is_ready_once_its_stacks_show_it() -> None:
    """SGLang's Engine logs errors only. Its idle loop computes without an end."""
    world, stacks = engine(), AutoStacks()
    world.raw(BAR.format(40, 2))
    world.run(3)
    assert world.verdict.phase == "weights"
    world.raw(BAR.format(100, 5) + "\n")
    world.run(10)
    assert (world.verdict.phase, stacks.due(world.store.snapshot)) == ("weights", "")
    world.run(20)
    assert stacks.due(world.store.snapshot) == "auto: no log"
    world.dump(0, *IDLE, samples=1)
    world.run(5)
    assert (world.verdict.state, world.verdict.rule, world.verdict.phase) == ("ready", "ready-engine", "serving")
    (row,) = rank_rows(world.store.snapshot)
    assert (set(row.cells), row.last) == ({DONE}, "all done")
    world.run(300)
    assert (world.verdict.state, stacks.due(world.store.snapshot)) == ("ready", "")
    world[0].does(gone=True, exit_signal=9)
    world.run(3)
    assert world.verdict.state == "crashed" and "after it was ready" in world.verdict.headline


def test_stacks_that_are_behind_the_bar_do_not_take_its_phase_back() -> None:
    world = engine()
    world.raw(BAR.format(40, 2))
    world.dump(0, "init_process_group@torch/distributed/distributed_c10d.py", samples=1)
    world.run(5)
    assert world.verdict.phase == "weights"
    world.dump(0, *LOADS, samples=1)
    world.run(5)
    assert world.verdict.phase == "weights" and world.verdict.state != "ready"


def test_an_engine_whose_log_tells_its_end_is_ready_when_no_http_server_follows() -> None:
    world = engine().to("graphs")
    world.log(
        "max_total_num_tokens=4096, chunked_prefill_size=2048, max_prefill_tokens=16384, max_running_requests=9"
    )
    world.run(5)
    assert world.verdict.state != "ready"
    world.run(20)
    assert (world.verdict.state, world.verdict.rule) == ("ready", "ready-engine")
    assert any("no further milestone has come for" in fact.text for fact in world.verdict.evidence)


@pytest.mark.parametrize("why", ["a command of its own", "a port that opens", "somebody listens"])
def test_a_server_with_http_is_not_called_ready_by_its_ranks(why: str) -> None:
    world = engine(in_program=why != "a command of its own").to("graphs")
    if why == "a port that opens":
        world.answers(503)
    if why == "somebody listens":
        world.answers(None, answer="no_response")
    world.log(
        "max_total_num_tokens=4096, chunked_prefill_size=2048, max_prefill_tokens=16384, max_running_requests=9"
    )
    world.run(25)
    assert world.verdict.state not in ("ready", "unhealthy")


def test_a_request_of_the_program_is_no_ready_line_of_a_server_whose_port_is_closed() -> None:
    """vLLM's LLM.generate draws bars; they had made it "unhealthy", as nothing listens on the default port."""
    world = engine()
    server = world.store.snapshot.server
    assert server is not None
    world.step(Event(world.t, "server", ServerReading(replace(server, family="vllm", version="0.32.0"))))
    world.port = PortReading("127.0.0.1", 8000, "refused")
    took = "init engine (profile, create kv cache, warmup model) took 3.25 s (compilation: 0.00 s)"
    world.raw(f"(EngineCore pid=101) INFO 11-30 17:54:18 [core.py:350] {took}\n")
    world.raw("\rProcessed prompts:   0%|          | 0/1 [00:00<?, ?it/s, est. speed input: 0.00 toks/s]")
    world.raw("\rProcessed prompts: 100%|####| 1/1 [00:00<00:00, 12.57it/s, est. speed input: 12.61 toks/s]\n")
    world.run(60)
    assert (world.verdict.state, world.verdict.rule) == ("ready", "ready-engine")
    assert world.verdict.evidence[0].text == "it works on requests (line 2)"
    assert "unhealthy" not in {change.state for change in world.store.snapshot.verdicts}


def test_an_engine_that_tells_of_its_workers_end_is_not_the_worker() -> None:
    """The worker was gone before sgmon looked, so that its engine looks like one that works itself."""
    world = engine()
    server = world.store.snapshot.server
    assert server is not None
    world.step(Event(world.t, "server", ServerReading(replace(server, family="vllm", version="0.32.0"))))
    said = "Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor."
    world.raw(f"(EngineCore pid=101) ERROR 11-30 17:28:11 [multiproc_executor.py:315] {said}\n")
    world.run(10)
    assert world.verdict.state == "crashed" and "101" not in world.verdict.headline
