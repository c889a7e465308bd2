"""What hardly any recording shows: a log without a server, odd answers of the port, waits and clocks of the families.

Each test asks the point of its case; all that was said beside it is kept (``make goldens``).
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.analyse.diagnosis.clocks import clock_fact
from sgmon.analyse.diagnosis.verdict import diagnose
from sgmon.analyse.store import Store
from sgmon.model import (
    Event,
    KillClock,
    LogLine,
    LogReading,
    LogState,
    PortReading,
    ProbeReading,
    Server,
    ServerArgs,
    ServerReading,
    Snapshot,
    Verdict,
)
from tests.diagnosis.verdict_history import VerdictHistory
from tests.diagnosis.world import World

EPOCH = 1_767_323_045.0
BEGIN = "[2026-01-02 03:04:06 TP0] Load weight begin. avail mem=78.50 GB\n"
READY = "[2026-01-02 03:04:09] The server is fired up and ready to roll!\n"
LATE = "[2026-01-02 03:04:19] Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.\n"
OOM = (
    "[2026-01-02 03:04:09 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/x/scheduler.py", line 1, in run\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


class LogOnly(VerdictHistory):
    """A log that a command prints; no server on this machine."""

    def __init__(self) -> None:
        super().__init__()
        self.store, self.t = Store(EPOCH), 0.0
        self.step("server", ServerReading())

    def step(self, kind: str, reading: object = None) -> None:
        self.note(self.store.step(Event(self.t, kind, reading)))  # type: ignore[arg-type]

    def says(self, text: str = "", **more: object) -> None:
        self.step("log", LogReading("kubectl logs x", kind="command", text=text, **more))  # type: ignore[arg-type]

    def run(self, seconds: int) -> Verdict:
        for _ in range(seconds):
            self.t += 1.0
            self.step("tick")
        return self.store.snapshot.verdict


@pytest.mark.parametrize(
    ("text", "seconds", "rule"),
    [
        (BEGIN, 3, "log-only-moving"),
        (BEGIN, 8, "log-only-quiet"),
        (BEGIN, 2000, "log-only-silent"),
        (BEGIN + READY, 4, "log-only-ready"),
        (BEGIN + READY + LATE, 8, "log-only-unhealthy"),
        (BEGIN + OOM, 8, "log-error"),
    ],
    ids=["grows", "quiet", "silent", "ready", "unhealthy", "crash"],
)
def test_a_log_alone(text: str, seconds: int, rule: str) -> None:
    log = LogOnly()
    log.run(1)
    log.says(text)
    assert log.run(seconds).rule == rule


def test_a_log_alone_that_is_empty_or_has_ended() -> None:
    log = LogOnly()
    log.says()
    assert log.run(3).headline == "nothing has come yet from kubectl logs x (log only)"
    log.says(note="it ended with 1: no such pod")
    assert log.run(3).headline == "it ended with 1: no such pod (log only)"
    log.says(BEGIN)
    log.run(2)
    log.says(change="ended", note="it ended with 0")
    assert log.run(4).rule == "log-only-ended"


@pytest.mark.parametrize(
    ("looked_for", "error", "rule"),
    [("", "no /proc", "no-look"), ("sglang", "no /proc", "no-server"), ("sglang", "", "no-server")],
)
def test_no_server_and_why(looked_for: str, error: str, rule: str) -> None:
    store = Store(0.0)
    store.step(Event(0.0, "server", ServerReading(looked_for=looked_for)))
    store.step(Event(1.0, "probe", ProbeReading("server", error=error, remedy="mount it")))
    assert store.step(Event(5.0, "tick")).verdict.rule == rule


@pytest.mark.parametrize("status", [404, 500, 503])
def test_other_answers_after_the_ready_line(status: int) -> None:
    world = World(2).to("ready")
    world.run(2)
    world.answers(status)
    world.run(20)
    assert world.verdict.state == "unhealthy" and f"/health says {status}" in world.verdict.headline


@pytest.mark.parametrize("answer", ["refused", "reset", "timeout", "no_response"])
def test_no_answer_after_the_ready_line(answer: str) -> None:
    world = World(2).to("ready").run(2)
    world.port = PortReading("127.0.0.1", 30000, answer)
    world.run(40)
    assert world.verdict.state == "unhealthy"


def test_a_port_that_is_not_asked() -> None:
    world = World(2).to("ready").run(2)
    world.answers(None, answer="skipped")
    world.run(6)
    assert world.verdict.rule == "ready-not-asked"


def test_a_stranger_has_the_port_of_a_ready_server() -> None:
    world = World(2).to("ready").run(2)
    world.answers(200, ours=False, name="python3")
    world.run(6)
    assert world.verdict.rule == "ready-foreign-port"


@pytest.mark.parametrize("version", ["0.5.17", "0.4.8"])
def test_a_server_without_a_log_is_ready_by_its_port(version: str) -> None:
    """Before 0.4.9 a 200 came before the warm-up."""
    world = World(2)
    server = world.store.snapshot.server
    assert server is not None
    world.step(Event(0.5, "server", ServerReading(replace(server, version=version, log_path="", log_kind="null"))))
    world.run(3)
    world.answers(200)
    world.run(8)
    assert (world.verdict.state == "ready") is (version == "0.5.17")


def test_ctrl_c_in_the_log() -> None:
    world = World(2).to("weights").run(4)
    world.log("Received KeyboardInterrupt")
    world.raw(
        'Traceback (most recent call last):\n  File "/x/launch_server.py", line 1, in <module>\nKeyboardInterrupt\n'
    )
    world.run(4)
    assert world.verdict.state == "ended"
    assert world.verdict.headline == "the server was stopped by Ctrl-C in the weight load"


def test_a_log_that_cannot_be_read_any_more() -> None:
    world = World(2).to("weights").run(3)
    world.step(
        Event(world.t, "log", LogReading("/tmp/server.log", "8:1", change="unreadable", note="permission denied"))
    )
    world.run(4)
    facts = [fact.text for fact in world.verdict.evidence if fact.signal == "log"]
    assert facts and facts[0].startswith("not read for ") and "(permission denied)" in facts[0]


@pytest.mark.parametrize(
    ("clock", "text"),
    [
        (KillClock("the gate", 50.0, 600.0), "this start ends itself in 50s: the gate gives up after 10m00s"),
        (KillClock("the gate", 0.0, 600.0), "the gate (10m00s) is due now"),
        (KillClock("timeout", 5.0, 60.0, outside=True), "timeout ends this server in 5.0s, 1m00s after it began"),
    ],
)
def test_a_clock_in_words(clock: KillClock, text: str) -> None:
    fact = clock_fact(clock)
    assert (fact.signal, fact.text, fact.value) == ("clock", text, clock.left_s)


def test_the_rendezvous_with_a_limit_of_its_own() -> None:
    world = World(2, args=ServerArgs(tp=2, model_path="/m", dist_timeout_s=60.0)).to("dist_init")
    for rank in world.ranks:
        rank.store_wait()
    world.run(45)
    assert any("the rendezvous (--dist-timeout)" in fact.text for fact in world.verdict.evidence)


@pytest.mark.parametrize(("limit", "disaggregated"), [("10m00s", ""), ("30m00s", "prefill")])
def test_the_warm_up_gives_up(limit: str, disaggregated: str) -> None:
    world = World(2, args=ServerArgs(tp=2, model_path="/m", disaggregation_mode=disaggregated)).to("warmup")
    for rank in world.ranks:
        rank.idle()
    world.run(40)
    assert any(limit in fact.text for fact in world.verdict.evidence if fact.signal == "clock")


@pytest.mark.parametrize(("version", "limit"), [("0.5.5", "5m00s"), ("0.5.6", "8m00s")])
def test_the_barrier_after_the_load(version: str, limit: str) -> None:
    world = World(2)
    server = world.store.snapshot.server
    assert server is not None
    world.step(Event(0.0, "server", ServerReading(replace(server, version=version))))
    world.to("weights").run(2)
    world.log("TP0: Load weight end. elapsed=8.00 s, type=LlamaForCausalLM, avail mem=100.00 GB, mem usage=16.00 GB.")
    world["TP0"].gloo_wait()
    world["TP1"].idle()
    world.run(35)
    clocks = [fact.text for fact in world.verdict.evidence if fact.signal == "clock"]
    assert len(clocks) == 1 and limit in clocks[0] and "TP1 is awaited" in clocks[0]


def test_weights_from_a_checkpoint_engine() -> None:
    world = World(1, args=ServerArgs(model_path="/m", wait_weights=True)).to("warmup")
    world[0].idle()
    world.run(6)
    assert world.verdict.rule == "checkpoint-engine"


@pytest.mark.parametrize(("t", "waits"), [(30.0, True), (30.1, False)])
def test_a_gate_whose_heartbeat_has_stopped_is_no_gate(t: float, waits: bool) -> None:
    world = World(2, args=ServerArgs(tp=2, gated_launch_port=31999)).to("dist_init")
    for rank in world.ranks:
        rank.idle()
    world.log("TP0: Gated launch still waiting for activation. rank=0 elapsed=10 s")
    world.run(29)
    snapshot = replace(world.store.snapshot, t=t, verdict=Snapshot().verdict)
    assert (diagnose(snapshot).rule == "gate") is waits


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("pipe", "the server's output goes into a pipe"),
        ("pty", "the server's output goes to a terminal"),
        ("socket", "the server's output goes into a socket"),
        ("null", "the server's output goes to /dev/null"),
        ("none", "the server has no output open"),
        ("other", "the server writes no file"),
        ("file", ""),
        ("deleted", ""),
        ("", ""),
    ],
)
def test_why_there_is_no_log(kind: str, words: str) -> None:
    found = diagnose(Snapshot(t=60.0, server=Server(1, 1, log_kind=kind)))
    gaps = [(gap.why, gap.remedy) for gap in found.missing if gap.signal == "log"]
    assert gaps == ([(words, "give --log FILE")] if words else [])


@pytest.mark.parametrize(("age_s", "said"), [(12.0, False), (12.5, True)])
def test_a_last_line_older_than_the_watch(age_s: float, said: bool) -> None:
    """Silent for 2 s by the watch; its date counts when it is more than 10 s older than that."""
    log = LogState(path="/l", lines=3, last_line=LogLine(3, "words", t=1000.0 - age_s), last_activity_t=98.0)
    world = World(2).to("weights").run(8)
    snapshot = replace(world.store.snapshot, t=100.0, epoch=900.0, log=log)
    facts = [fact.text for fact in diagnose(snapshot).evidence if fact.signal == "log"]
    assert facts and ("at least, its last dated line" in facts[0]) is said
