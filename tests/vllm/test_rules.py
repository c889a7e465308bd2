"""vLLM's waits that are meant, its time-outs, and what its port and its ready line mean; lines as vLLM prints them."""

from __future__ import annotations

from datetime import datetime

import pytest
from msgspec.structs import replace

from sgmon.analyse.store import Store
from sgmon.model import (
    Event,
    Listener,
    LogReading,
    PortReading,
    Process,
    ProcsReading,
    Role,
    Server,
    ServerReading,
    Snapshot,
    StartReading,
    Verdict,
)
from sgmon.servers.family import Launch
from sgmon.servers.vllm.server_args import from_launch
from tests.diagnosis.verdict_history import VerdictHistory

EPOCH = 1_795_950_000.0
ENGINE = "INFO 11-29 22:55:31 [core.py:112] Initializing a V1 LLM engine (v0.32.0) with config: model='m'"
WORLD = (
    "INFO 11-29 22:55:43 [parallel_state.py:1422] world_size=1 rank=0 local_rank=0 distributed_init_method=file:///x"
)
LOADED = "INFO 11-29 22:55:51 [model_runner.py:295] Model loading took 4.18 GiB and 7.237208 seconds"
CACHED = "INFO 11-29 22:56:34 [gpu_worker.py:466] Available KV cache memory: 122.95 GiB"
COMPLETE = "INFO 11-29 22:56:59 [core.py:302] init engine (profile, create kv cache, warmup model) took 1.05 s"
BEAT = "INFO 11-29 22:57:09 [core.py:1801] Waiting for READY message from DP Coordinator..."
READY = "INFO:     Application startup complete."


class Start(VerdictHistory):
    """A vLLM server in front of the real store: an idle tree, log lines and port readings when the test says so."""

    def __init__(self, words: str, *below: Process) -> None:
        super().__init__()
        args = from_launch(Launch("serve", ("m", *words.split())), lambda path: {})
        self.server = Server(
            500,
            1,
            args=args,
            args_source="command line",
            version="0.32.0",
            log_path="/l",
            log_kind="file",
            family="vllm",
        )
        self.below = below
        self.store, self.t, self.offset = Store(EPOCH), 0.0, 0
        self.step(Event(0.0, "server", ServerReading(self.server)))
        self.seen: list[Verdict] = []

    def step(self, event: Event) -> Snapshot:
        snapshot = self.store.step(event)
        self.note(snapshot)
        return snapshot

    def log(self, name: str, *lines: str) -> None:
        text = "".join(f"({name} pid=510) {line}\n" if name else f"{line}\n" for line in lines)
        reading = LogReading("/l", "8:1", self.offset, text, self.offset + len(text))
        self.offset += len(text)
        self.step(Event(self.t, "log", reading))

    def aged(self, name: str, line: str, age_s: float) -> None:
        """What was there before the watch, in a file whose mtime is so old."""
        text = f"({name} pid=510) {line}\n"
        reading = LogReading("/l", "8:1", self.offset, text, self.offset + len(text), age_s=age_s)
        self.offset += len(text)
        self.step(Event(self.t, "log", reading))

    def run(self, seconds: float, busy: float = 0.0) -> Verdict:
        """Time passes; the processes below the launcher use ``busy`` of a core each."""
        for _ in range(round(seconds)):
            self.t += 1.0
            launcher = Process(500, 1, 1, Role.LAUNCHER, state="S", threads=90, cpu_s=30.0)
            below = [_with(one, 5.0 + busy * self.t) for one in self.below]
            self.step(Event(self.t, "procs", ProcsReading((launcher, *below), uid=0)))
            self.seen.append(self.step(Event(self.t, "tick")).verdict)
        return self.store.snapshot.verdict

    def health(self, answer: str, status: int | None = None) -> None:
        listeners = (Listener("0.0.0.0:8000", 500, True),) if answer == "http" else ()
        self.step(Event(self.t, "port", PortReading("0.0.0.0", 8000, answer, status, listeners=listeners)))


def _with(process: Process, cpu_s: float) -> Process:
    words = {"state": "S", "threads": 90, "cpu_s": cpu_s, "wchan": "poll_schedule_timeout"}
    return Process(process.pid, process.ppid, process.start_ticks, process.role, process.rank, **words)


def engine(pid: int = 510, rank: str = "", role: Role = Role.ENGINE) -> Process:
    return Process(pid, 500, pid, role, rank)


def worker(pid: int = 520, rank: str = "", parent: int = 510) -> Process:
    return Process(pid, parent, pid, Role.WORKER, rank)


def complete(start: Start, name: str = "EngineCore_DP0") -> None:
    start.log(name, ENGINE)
    start.log("Worker", WORLD, LOADED, CACHED)
    start.log(name, COMPLETE)


def test_a_replica_on_another_node_that_never_comes():
    """dp 2, one of them here: the engine core is complete and waits for ever, with a line every 10 s."""
    words = "-dp 2 --data-parallel-size-local 1 --data-parallel-address 10.0.0.1"
    start = Start(words, engine(510, "DP0"), worker(520, "DP0"))
    complete(start)
    start.run(3)
    begin = start.t
    for _ in range(32):
        start.log("EngineCore_DP0", BEAT)
        start.run(10)
    first = next(v for v in start.seen if v.state == "waiting-by-design")
    assert (first.rule, first.odd_ranks, first.phase) == ("engine-missing", ("DP1",), "http")
    assert first.headline == "DP1 of 2 engine cores has not joined at 10.0.0.1"
    late = next(v for v in start.seen if v.state == "stalled")
    assert late.rule == "engine-missing" and "those of this node wait for it" in late.headline
    assert late.since_t == pytest.approx(begin, abs=1)
    assert {v.state for v in start.seen[int(begin) + 4 :]} == {"waiting-by-design", "stalled"}


def test_replicas_of_this_node_are_not_missing_elsewhere():
    start = Start("-dp 2", engine(510, "DP0"), worker(520, "DP0"), engine(511, "DP1"), worker(521, "DP1", 511))
    complete(start)
    start.log("EngineCore_DP0", BEAT)
    start.run(12)
    assert all(v.rule != "engine-missing" for v in start.seen)


def test_a_headless_node_whose_head_does_not_answer():
    """It gives up after 5 min (HANDSHAKE_TIMEOUT_MINS)."""
    start = Start("--headless -dp 2 -dpl 1 -dpr 1 -dpa 10.0.0.1", engine(510, "DP1", Role.WORKER))
    found = start.run(40)
    assert (found.state, found.rule, found.odd_ranks) == ("waiting-by-design", "head-missing", ("node 0",))


def test_a_headless_node_is_ready_when_its_engine_cores_are():
    start = Start("--headless -dp 2 -dpl 1 -dpr 1", engine(510, "DP1"), worker(520, "DP1"))
    complete(start, "EngineCore_DP1")
    start.run(3)
    start.log("EngineCore_DP1", BEAT)
    assert start.run(5).rule == "engine-missing"
    assert start.run(30).rule == "ready-node" and start.store.snapshot.verdict.state == "ready"


def test_a_headless_node_of_a_group_waits_for_its_head_and_does_not_stall():
    start = Start("--headless -tp 2 -n 2 -r 1", worker(520, "TP1", 500))
    start.log("Worker_TP1", WORLD, LOADED, CACHED)
    start.run(120)
    assert {v.state for v in start.seen[12:]} == {"waiting-by-design"} and start.seen[-1].rule == "headless"


def test_several_api_servers_give_up_after_ten_minutes():
    start = Start("-dp 2", engine(510, "DP0"), engine(511, "DP1"), worker(520, "DP0"), worker(521, "DP1", 511))
    start.log("EngineCore_DP0", ENGINE)
    found = start.run(60)
    clock = next(fact for fact in found.evidence if fact.signal == "clock")
    assert found.state == "stalled" and "VLLM_ENGINE_READY_TIMEOUT_S" in clock.text and 500 < clock.value <= 600


def test_the_environment_changes_that_limit():
    start = Start("-dp 2", engine(510, "DP0"), engine(511, "DP1"), worker(520, "DP0"), worker(521, "DP1", 511))
    start.store.step(Event(0.1, "start", StartReading(500, env=(("VLLM_ENGINE_READY_TIMEOUT_S", "90"),))))
    start.log("EngineCore_DP0", ENGINE)
    clock = next(fact for fact in start.run(60).evidence if fact.signal == "clock")
    assert clock.value <= 90


def test_refused_then_200_is_ready():
    """The port is bound at launch and listens last: nothing is said of it before."""
    start = Start("", engine(), worker())
    start.health("refused")
    complete(start, "EngineCore")
    start.run(5, busy=0.5)
    assert not any("port" in fact.text for v in start.seen for fact in v.evidence)
    start.log("", READY)
    start.health("refused")
    start.run(1)
    start.health("http", 200)
    found = start.run(2)
    assert (found.state, found.phase) == ("ready", "serving")


def test_an_idle_ready_server_is_ready_for_ever():
    """Its workers use 1.2 to 2.1 % of a core and wait; a stuck one would answer 200 as well."""
    start = Start("-tp 2", engine(), worker(520, "TP0"), worker(521, "TP1"))
    complete(start, "EngineCore")
    start.log("", READY)
    start.health("http", 200)
    start.run(200, busy=0.02)
    assert {v.state for v in start.seen[3:]} == {"ready"}


def test_what_workers_compute_is_no_activity_of_their_engine() -> None:
    """Else an engine core that only waits for them looked busy: "child processes at 112% CPU"."""
    start = Start("-tp 2")
    for at in range(1, 12):
        tree = {"tree_cpu_s": 2.0 * at}
        below = (replace(engine(), **tree), *(worker(520 + n, f"TP{n}") for n in range(2)))  # type: ignore[arg-type]
        reading = ProcsReading((Process(500, 1, 1, Role.LAUNCHER, state="S", **tree), *below), uid=0)  # type: ignore[arg-type]
        start.store.step(Event(float(at), "procs", reading))
    marks = {clock.pid: [mark.text for mark in clock.marks] for clock in start.store.step(Event(12.0, "tick")).clocks}
    assert not [text for pid in (500, 510) for text in marks[pid] if "child processes" in text]


def test_a_headless_node_whose_beat_was_overdue_when_sgmon_came():
    """One look at a log whose last beat is 20 s old by its own date, and whose last line is 5 s old."""
    start = Start("--headless -dp 2 -dpl 1 -dpr 1", engine(510, "DP1"), worker(520, "DP1"))
    complete(start, "EngineCore_DP1")
    beat = datetime.fromtimestamp(EPOCH + start.t - 20).strftime("%m-%d %H:%M:%S")
    start.aged("EngineCore_DP1", f"INFO {beat} {BEAT.partition('[')[1]}{BEAT.partition('[')[2]}", 5.0)
    assert start.run(1).rule == "ready-node"
