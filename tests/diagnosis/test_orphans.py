"""What a server that is gone has left: named before a start, beside it, and as the cause of its crash."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse.store import Store
from sgmon.model import (
    Candidate,
    Event,
    Gpu,
    GpuProcess,
    GpuReading,
    Listener,
    Orphan,
    PortReading,
    Role,
    ServerReading,
)
from tests.diagnosis.world import MB, World

LEFT = (Orphan(50, 5, "sglang::tokenizer_worker:50", (31010,)), Orphan(51, 5, "sglang::scheduler_TP0"))


def test_orphans_are_named_before_a_start() -> None:
    store = Store(0.0)
    store.step(Event(0.1, "server", ServerReading(None, looked_for="x", orphans=LEFT)))
    verdict = store.step(Event(0.5, "tick")).verdict
    assert (verdict.state, verdict.rule) == ("waiting", "no-server")
    assert [e.pid for e in verdict.evidence] == [50, 51, None]  # the last: what was looked for
    assert "listens on port 31010" in verdict.evidence[0].text
    assert verdict.next[0].command.endswith("-p 50,51")


def test_a_launcher_that_may_be_theirs_is_named() -> None:
    store = Store(0.0)
    left = (Orphan(50, 5, "VLLM::Worker_TP0", launcher=40), Orphan(51, 5, "VLLM::Worker_TP1", launcher=40))
    store.step(Event(0.1, "server", ServerReading(None, looked_for="x", orphans=left)))
    text = store.step(Event(0.5, "tick")).verdict.evidence[0].text
    assert text.startswith("2 processes whose parent is gone, perhaps of the server of pid 40: pid 50 (VLLM")


def test_each_orphan_is_named_once_and_the_one_on_the_asked_port_first() -> None:
    left = (Orphan(60, 5, "python3", (8000,)), *LEFT)
    store = Store(0.0)
    store.step(Event(0.1, "server", ServerReading(None, looked_for="x", asked_port=31010, orphans=left)))
    verdict = store.step(Event(0.5, "tick")).verdict
    assert [e.pid for e in verdict.evidence] == [50, 60, None]
    assert [("pid 60" in e.text, "pid 50" in e.text) for e in verdict.evidence[:2]] == [(False, True), (True, False)]


def test_orphans_and_other_servers_are_named_beside_a_start() -> None:
    world = World(2).to("weights")
    world.run(1)
    server = world.store.snapshot.server
    others = (Candidate(100, 1, "x", 30000), Candidate(300, 2, "y", 31001))
    world.step(Event(world.t, "server", ServerReading(server, others, orphans=LEFT)))
    world.run(3)
    assert {50, 51} <= {e.pid for e in world.verdict.evidence}
    world.step(Event(world.t, "server", ServerReading(server, others)))
    world.run(1)
    assert world.verdict.evidence[-1].pid == 300


def test_who_holds_the_memory_stays_in_the_crash_that_it_caused() -> None:
    """An orphan of an old start; the ranks are gone from the GPU when the crash is read."""
    world = World(2).to("weights")
    for rank in world.ranks:
        rank.does(read=300 * MB, cpu=0.9, state="R", wchan="0")

    def gpus(*own: int) -> GpuReading:
        old = GpuProcess(50, 100_000 * MB, name="sglang::scheduler_TP0")
        ranks = tuple(GpuProcess(pid, 20_000 * MB, name="sglang::scheduler_TP0") for pid in own)
        return GpuReading(
            (Gpu(0, "NVIDIA H200", total_bytes=140_000 * MB, used_bytes=125_000 * MB, processes=(old, *ranks)),),
            source="NVML",
        )

    world.has_gpu = False
    world.run(1)
    world.step(Event(world.t, "gpu", gpus(101)))
    world.run(3)
    world.raw(
        "[2026-11-29 15:00:01 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, unhandled cuda error\n\n"
    )
    for rank in world.ranks:
        rank.does(gone=True)
    world.launcher.does(gone=True, role=Role.LAUNCHER)
    world.step(Event(world.t, "gpu", gpus()))
    world.run(3)
    assert world.verdict.state == "crashed"
    assert "NCCL failed" in world.verdict.headline and "held by pid 50" in world.verdict.headline
    assert world.verdict.evidence[1].pid == 50
    assert "-p 50" in world.verdict.next[0].command


def test_a_port_owner_that_was_read_before_the_server_was_known() -> None:
    world = World(1).to("weights")
    who = (Listener("0.0.0.0:30000", 4242, None, "sglang::tokenizer_worker:4242"),)
    world.port = replace(PortReading("::", 30000, "no_response"), listeners=who)
    world[0].compute()
    world.run(5)
    assert (world.verdict.state, world.verdict.evidence[0].pid) == ("will-fail", 4242)
