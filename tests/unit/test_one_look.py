"""One look: what it waits for, how long, and what it says when it has not seen everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from msgspec.structs import replace

from sgmon.collect.source import LiveSource
from sgmon.commands.status import PATIENCE_MOST_S, Asked, load_now, look, missing, patience, unfinished
from sgmon.model import (
    Compiler,
    Event,
    GpuReading,
    Listener,
    LogReading,
    LogState,
    PortReading,
    ProbeReading,
    Process,
    ProcsReading,
    Role,
    Server,
    ServerArgs,
    ServerReading,
    Snapshot,
    Verdict,
)
from sgmon.model.preflight import Preflight
from sgmon.settings import Settings
from sgmon.watch.engine import Engine
from tests.unit.test_source import Scripted

EPOCH = 1_000_000.0
SERVER = ServerReading(Server(100, 1, log_path="/log", log_kind="file", started_epoch=EPOCH - 500))
LAUNCHER = Process(100, 1, 1, Role.LAUNCHER, state="S", threads=9, cpu_s=3.0, wchan="poll_schedule_timeout")
RANK = Process(101, 100, 2, Role.WORKER, state="S", threads=9, cpu_s=3.0, wchan="futex_do_wait")
PROCS = ProcsReading((LAUNCHER, RANK))
PORT = PortReading("127.0.0.1", 30000, "refused")


class Script:
    """A source with the events of one look; then ticks until it is stopped."""

    epoch = EPOCH
    replay = ""

    def __init__(self, *events: Event) -> None:
        self.events = events
        self.stopped_t: float | None = None

    def __iter__(self) -> Iterator[Event]:
        t = 0.0
        for event in self.events:
            if self.stopped_t is not None:
                return
            t = event.t
            yield event
        while self.stopped_t is None and t < 60:
            t += 0.25
            self.t = t
            yield Event(t, "tick")

    def stop(self) -> None:
        self.stopped_t = self.stopped_t or getattr(self, "t", 0.0)

    def request_stacks(self, pids: Sequence[int] | None, samples: int, native: bool, why: str) -> int | None:
        return None

    def request_ras(self) -> None:
        pass

    def choose(self, pid: int) -> None:
        pass


def log(
    age_s: float | None, text: str = "[2026-11-29 15:00:00] Load weight begin. avail mem=1.00 GB\n"
) -> LogReading:
    return LogReading("/log", "8:1", 0, text, len(text), age_s=age_s)


def seen(*readings: object, patience_s: float = 2.0) -> tuple[Snapshot, Script]:
    kinds = {
        ServerReading: "server",
        ProcsReading: "procs",
        LogReading: "log",
        PortReading: "port",
        Preflight: "preflight",
    }
    script = Script(*(Event(0.1, kinds[type(one)], one) for one in readings))
    engine = Engine(script, auto_evidence=False, publish_s=0.0)
    return look(engine, 0.0, patience_s=patience_s), script


def test_it_ends_when_everything_has_answered() -> None:
    snapshot, script = seen(SERVER, PROCS, log(1.0), PORT, Preflight())
    assert snapshot.verdict.state == "progressing" and snapshot.t < 1.0
    assert script.stopped_t is not None and script.stopped_t < 1.0


def test_a_look_at_a_ready_server_ends_with_the_last_reading_and_not_with_the_next_tick() -> None:
    """GPUs that were read last had cost 0.2 s."""
    ready = log(1.0, "[2026-11-29 15:00:00] The server is fired up and ready to roll!\n")
    port = PortReading("127.0.0.1", 30000, "http", status=200, listeners=(Listener("127.0.0.1:30000", 100, True),))
    readings = [
        ("server", SERVER),
        ("log", ready),
        ("port", port),
        ("procs", PROCS),
        ("gpu", GpuReading(state="no-driver", unavailable="no driver")),
    ]
    script = Script(*(Event(0.1, kind, one) for kind, one in readings))
    snapshot = look(Engine(script, auto_evidence=False, publish_s=0.0), 0.0, Asked(gpus=True), patience_s=2.0)
    assert (snapshot.verdict.state, snapshot.t) == ("ready", 0.1)


@pytest.mark.parametrize(
    ("words", "asked"), [("The server is fired up and ready to roll!", 0), ("Load weight begin.", 1)]
)
def test_the_facts_of_a_start_are_read_when_the_log_does_not_end_it(words: str, asked: int) -> None:
    reads = []

    def facts() -> Preflight:
        reads.append(1)
        return Preflight()

    server = ServerReading(replace(SERVER.server, args=ServerArgs(model_path="/m")))
    text = f"[2026-11-29 15:00:00] {words}\n"
    scripted = {
        "server": lambda: server,
        "procs": lambda: PROCS,
        "log": lambda: log(1.0, text),
        "port": lambda: PORT,
        "preflight": facts,
    }
    source = LiveSource(
        Settings(), lambda watched, source: [Scripted(kind, read) for kind, read in scripted.items()], one_look=True
    )
    look(Engine(source, auto_evidence=False, publish_s=0.0), 0.0, patience_s=40.0)
    assert min(len(reads), 1) == asked


def test_facts_that_come_late_are_waited_for_and_leave_no_look_unfinished() -> None:
    snapshot, _ = seen(SERVER, PROCS, log(1.0), PORT)
    assert snapshot.verdict.state == "progressing" and snapshot.t >= 2.0


def test_what_did_not_answer_in_time_is_unknown_and_named() -> None:
    snapshot, script = seen(SERVER, log(1.0))
    assert (snapshot.verdict.state, snapshot.verdict.rule) == ("unknown", "look-unfinished")
    assert "its processes, its port" in snapshot.verdict.headline
    assert script.stopped_t == pytest.approx(2.0, abs=0.3)
    nothing, _ = seen()
    assert nothing.verdict.rule == "look-unfinished" and "list of processes" in nothing.verdict.headline


def test_a_node_without_a_port_is_not_asked_for_one() -> None:
    """vLLM's --headless. Where no argument is known the port says so itself (``tests/probes/test_port.py``)."""
    headless = replace(SERVER.server, args=ServerArgs(headless=True), family="vllm")
    assert headless.port is None
    snapshot, _ = seen(ServerReading(headless), PROCS, log(1.0))
    assert snapshot.verdict.rule != "look-unfinished"
    hidden = replace(SERVER.server, args=ServerArgs(known=False))
    snapshot = Snapshot(server=hidden, procs=PROCS, log=LogState(size=1))
    assert missing(snapshot) == ("its port",)
    assert missing(replace(snapshot, port=PortReading("127.0.0.1", 0, "skipped"))) == ()


def test_what_is_certain_stands_though_the_look_was_not_finished() -> None:
    sure = Snapshot(verdict=Verdict("stopped", "TP0 is paused", rule="stopped"))
    assert unfinished(sure, ["its port"]) is sure.verdict


def test_a_loaded_machine_gets_more_time() -> None:
    assert (patience(1.0, 4), patience(8.0, 4), patience(99.0, 2)) == (2.0, 4.0, PATIENCE_MOST_S)
    assert patience(16.0, 2) == 16.0, "a look needed 9 s on two cores at this load"


def test_a_load_that_has_just_begun_counts(tmp_path) -> None:
    file = tmp_path / "loadavg"
    file.write_text("0.70 0.20 0.10 31/402 9000\n")
    assert load_now(str(file)) == 31.0
    file.write_text("24.10 0.20 0.10 3/402 9000\n")
    assert load_now(str(file)) == 24.1


def test_what_was_asked_for_is_waited_for() -> None:
    assert missing(Snapshot(looked_for="x"), Asked(gpus=True, folders=True, streams=True)) == (
        "watched folders",
        "GPUs",
        "the end of the log",
    )


@pytest.mark.parametrize(
    ("change", "age_s", "state"),
    [
        (lambda p: replace(p, compilers=(Compiler(7, "cicc", "norm.cu"),)), 300.0, "progressing"),
        (lambda p: p, 300.0, "unknown"),  # a silent log, and nothing that tells of movement
        (lambda p: p, 2.0, "progressing"),
        (lambda p: replace(p, state="T"), 2.0, "stopped"),
    ],
)
def test_one_look_at_a_start(change: Callable[[Process], Process], age_s: float, state: str) -> None:
    snapshot, _ = seen(SERVER, ProcsReading((LAUNCHER, change(RANK))), log(age_s), PORT)
    assert snapshot.verdict.state == state


def test_no_log_and_an_old_server_is_not_called_progress() -> None:
    silent = ServerReading(replace(SERVER.server, log_path="", log_kind="pipe"))
    snapshot, _ = seen(silent, PROCS, PORT)
    assert (snapshot.verdict.state, snapshot.verdict.rule) == ("unknown", "first-look")
    young = ServerReading(replace(silent.server, started_epoch=EPOCH - 5))
    assert seen(young, PROCS, PORT)[0].verdict.state == "progressing"


def test_a_rank_that_a_tracer_holds_is_looked_at_for_longer() -> None:
    held = ProcsReading((LAUNCHER, replace(RANK, state="t", tracer_pid=4711)))
    snapshot, script = seen(SERVER, held, log(2.0), PORT)
    assert (snapshot.verdict.state, snapshot.verdict.rule) == ("stopped", "traced")
    assert script.stopped_t is not None and script.stopped_t < 7.0


def test_a_look_whose_processes_could_not_be_read_is_unknown() -> None:
    """No thread could be started for that probe: the port and the log alone are no progress."""
    script = Script(
        Event(0.1, "server", SERVER),
        Event(0.1, "probe", ProbeReading("procs", error="sgmon can start no thread", remedy="ulimit -u")),
        Event(0.2, "port", PORT),
        Event(0.2, "log", log(None)),
    )
    snapshot = look(Engine(script, auto_evidence=False, publish_s=0.0), 0.0, patience_s=2.0)
    assert (snapshot.verdict.state, snapshot.verdict.rule) == ("unknown", "look-unfinished")
    assert "its processes" in snapshot.verdict.headline
    assert any(gap.why == "sgmon can start no thread" for gap in snapshot.verdict.missing)


def test_a_look_does_not_wait_for_a_probe_that_has_failed() -> None:
    """Out of threads: each probe says so at once."""
    names = ("server", "procs", "log", "port", "start", "preflight", "kernel", "gpu", "watchdir")
    failures = [
        Event(0.1, "probe", ProbeReading(one, error="sgmon can start no thread", remedy="u")) for one in names
    ]
    everything = Asked(folders=True, gpus=True, streams=True)
    for known in ([], [Event(0.05, "server", SERVER)]):
        script = Script(*known, *failures)
        snapshot = look(Engine(script, auto_evidence=False, publish_s=0.0), 0.0, everything, patience_s=2.0)
        assert snapshot.t < 1.0
        assert (snapshot.verdict.state, snapshot.verdict.rule) == ("unknown", "look-unfinished")
        assert "sgmon can start no thread" in snapshot.verdict.headline


def test_a_ready_server_whose_log_cannot_be_read_is_ready_in_one_look() -> None:
    """Seen in a pod: "sgmon status --probe readyz" said no for good, because 200 had not held within 0.3 s."""
    server = ServerReading(Server(100, 1, started_epoch=EPOCH - 500, version="0.5.23"))
    script = Script(
        Event(0.1, "server", server),
        Event(0.2, "procs", PROCS),
        Event(1.0, "port", replace(PORT, answer="http", status=200)),
        Event(1.1, "log", LogReading("", kind="pipe")),
    )
    assert look(Engine(script), 0.0, patience_s=2.0).verdict.state == "ready"  # type: ignore[arg-type]
