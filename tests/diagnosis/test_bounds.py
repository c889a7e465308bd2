"""Limits of the rules: what is said just before a limit, and at it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.analyse.diagnosis import silence_limits, usual
from sgmon.analyse.diagnosis.blame import idle_gpu
from sgmon.analyse.diagnosis.context import context_of
from sgmon.analyse.diagnosis.driver import driver_facts
from sgmon.analyse.diagnosis.load import Load, load_fact
from sgmon.analyse.diagnosis.orphans import orphan_facts, other_servers
from sgmon.analyse.diagnosis.other_nodes import MOST
from sgmon.analyse.diagnosis.silence_limits import Limits, cpu_alone_s, disk_quantum_s, limits
from sgmon.analyse.diagnosis.slowness import slowness
from sgmon.analyse.diagnosis.verdict import diagnose
from sgmon.model import (
    ActivityClock,
    Baseline,
    Candidate,
    Event,
    Gpu,
    GpuReading,
    LogState,
    Milestone,
    Orphan,
    ProbeReading,
    ProbeStatus,
    Process,
    ProcsReading,
    Rank,
    Role,
    Server,
    Snapshot,
    Usual,
)
from sgmon.servers.phases import Phase
from tests.diagnosis.world import World

LONG = Phase("x", "x", "in x", silence_s=20.0, log_silence_s=40.0, cpu_alone_s=100.0)
SHORT = Phase("y", "y", "in y", silence_s=2.0, log_silence_s=4.0, cpu_alone_s=50.0)
WEIGHTS = Phase("weights", "weights", "in weights", cpu_alone_s=200.0)
DRAFT = Phase("draft_weights", "w", "in w", cpu_alone_s=200.0, draft_of="weights")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (limits(SHORT, blind=False), (15.0, 30.0)),
        (limits(LONG, blind=False), (40.0, 55.0)),
        (limits(LONG, blind=False, certain=True), (15.0, 30.0)),
        (limits(LONG, blind=True), (80.0, 95.0)),
        (limits(LONG, blind=True, certain=True), (80.0, 95.0)),
        (limits(SHORT, blind=True), (15.0, 45.0)),
        (limits(SHORT, blind=False, recovered_silence_s=40.0), (60.0, 75.0)),
        (limits(SHORT, blind=False, recovered_silence_s=45.0), (67.5, 82.5)),
        (limits(SHORT, blind=False, recovered_silence_s=500.0), (67.5, 82.5)),
    ],
)
def test_how_long_a_phase_may_be_quiet(found: Limits, expected: tuple[float, float]) -> None:
    assert (found.suspect_s, found.stalled_s) == expected


@pytest.mark.parametrize(
    ("read_ahead", "seconds"),
    [(None, 60.0), (0, 60.0), (8_000_000, 60.0), (8_400_000, 63.0), (128 * 2**20, 1006.632960)],
)
def test_how_long_a_slow_disk_may_look_dead(read_ahead: int | None, seconds: float) -> None:
    assert disk_quantum_s(read_ahead) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("phase", "mixed", "share", "seconds"),
    [
        (LONG, False, 1.0, 100.0),
        (LONG, True, 1.0, 60.0),
        (SHORT, True, 1.0, 50.0),
        (WEIGHTS, True, 1.0, 200.0),
        (DRAFT, True, 1.0, 200.0),
        (LONG, False, 0.5, 200.0),
        (LONG, False, 0.2, 500.0),
        (LONG, False, 0.1, 500.0),
        (LONG, False, 2.0, 100.0),
    ],
)
def test_how_long_cpu_time_alone_may_pass_for_work(phase: Phase, mixed: bool, share: float, seconds: float) -> None:
    assert cpu_alone_s(phase, mixed=mixed, share=share) == pytest.approx(seconds)
    assert silence_limits.cpu_alone_s(phase, mixed=mixed) == cpu_alone_s(phase, mixed=mixed, share=1.0)


@pytest.mark.parametrize(
    ("state", "failing_s", "found"),
    [
        ("silent", 10.0, True),
        ("silent", 9.9, False),
        ("died", None, True),
        ("died", 10.0, True),
        ("none", 99.0, False),
    ],
)
def test_when_the_silence_of_a_driver_is_a_finding(state: str, failing_s: float | None, found: bool) -> None:
    reading = GpuReading(unavailable="NVML is silent", state=state, failing_s=failing_s)
    assert bool(driver_facts(Snapshot(gpu=reading))) is found


@pytest.mark.parametrize(("most", "now", "idle"), [(5, 99, True), (6, 0, False), (None, 0, True), (None, 1, False)])
def test_how_much_an_idle_gpu_may_do(most: int | None, now: int, idle: bool) -> None:
    clock = ActivityClock(10, "TP0", Role.WORKER, 0.0, gpu_util_max=most)
    rank = Rank("TP0", "TP0", Role.WORKER, Process(10, 1, 1, Role.WORKER), clock, gpu=Gpu(0, util_percent=now))
    assert idle_gpu(rank) is idle


def test_how_many_orphans_are_named() -> None:
    def words(count: int) -> str:
        left = tuple(Orphan(pid, 1, f"t{pid}") for pid in range(1, count + 1))
        return orphan_facts(Snapshot(orphans=left))[0].text

    assert words(1) == "1 process of a server that is gone: pid 1 (t1)"
    assert words(3) == "3 processes of a server that is gone: pid 1 (t1), 2 (t2), 3 (t3)"
    assert words(4) == "4 processes of a server that is gone: pid 1 (t1), 2 (t2), 3 (t3) and 1 more"


def test_how_many_other_servers_are_named() -> None:
    others = tuple(Candidate(pid, 1, "t", port=0 if pid == 2 else 30000 + pid) for pid in range(1, 6))
    facts = other_servers(Snapshot(server=Server(1, 1), candidates=others))
    text = "not watched here: pid 2 (port unknown), pid 3 (port 30003), pid 4 (port 30004)"
    assert [(fact.text, fact.pid, fact.signal) for fact in facts] == [(text, 2, "proc")]
    assert other_servers(Snapshot(server=Server(1, 1), candidates=others[:1])) == ()
    assert other_servers(Snapshot(candidates=others)) == ()


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"share": 0.5, "by": "bytes"}, "50% by the bytes"),
        ({"eta_s": 1.0}, "1.0s to go"),
        ({"eta_s": 0.9, "speed": 0.0}, "0 B/s"),
        ({"why": "w"}, "time to go unknown: w"),
        ({"speed": 0.0}, "0 B/s"),
        ({"shards": ("a",)}, "1 shard mapped now"),
        ({"done_bytes": 0, "total_bytes": 2**30}, "0 B of 1.0 GiB read"),
    ],
)
def test_each_part_of_a_load(kwargs: dict[str, object], words: str) -> None:
    empty = Load(None, None, None, None, None, "")
    assert load_fact(replace(empty, **kwargs)).text == words


def past(count: int = 5, *, narrow: bool = True, **more: object) -> Baseline:
    milestones = (Usual("load_begin", 20.0, 25.0, 10, 5), Usual("load_end", 60.0, 80.0, 20, 5))
    return Baseline(
        count=count, narrow=narrow, milestones=milestones, ready_median_s=100.0, like="same model", **more
    )


def start(t: float, base: Baseline | None, *passed: str) -> Snapshot:
    """A start that began at 0; the first milestone passed at 21 s, the second at 50 s."""
    made = tuple(
        Milestone(name, "end", "weights", line, seen_t=seen_t)
        for name, line, seen_t in (("load_begin", 11, 21.0), ("load_end", 21, 50.0))
        if name in passed
    )
    log = LogState(milestones=made, lines=30)
    return Snapshot(t=t, server=Server(1, 1, started_epoch=0.0), log=log, baseline=base)


@pytest.mark.parametrize(("count", "narrow", "found"), [(5, True, 7.0), (4, True, None), (5, False, None)])
def test_how_many_starts_change_a_limit(count: int, narrow: bool, found: float | None) -> None:
    assert usual.quiet_s(start(1.0, past(count, narrow=narrow, longest_quiet_s=7.0))) == found


@pytest.mark.parametrize(
    ("t", "narrow", "late"),
    # load_end: median 60, nine of ten 80: late after 1.5 x 60 or 80 + 30, of another kind after 4 x 60
    [(110.0, True, False), (110.1, True, True), (240.0, False, False), (240.1, False, True)],
)
def test_when_a_milestone_is_late(t: float, narrow: bool, late: bool) -> None:
    snapshot = start(t, past(narrow=narrow), "load_begin")
    assert usual.is_late(snapshot) is late
    assert bool(usual.late_words(snapshot)) is late


@pytest.mark.parametrize(
    ("usual_s", "took_s", "slow"),
    # half as long again, and 30 s more at least
    [(100.0, 150.0, False), (100.0, 150.1, True), (10.0, 40.0, False), (10.0, 40.1, True), (0.0, 999.0, False)],
)
def test_how_much_longer_than_usual_a_phase_may_take(usual_s: float, took_s: float, slow: bool) -> None:
    begun = Milestone("load_begin", "begin", "weights", 1, seen_t=0.0)
    log = LogState(milestones=(begun,), last_milestone=begun, phase="weights")
    found = slowness(context_of(Snapshot(t=took_s, log=log, phase="weights", usual_s=(("weights", usual_s),))), [])
    assert (found is not None) is slow


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "later than the one start on this machine that is like this one"),
        (2, "later than all 2 starts on this machine that are like this one"),
        (9, "later than all 9 starts on this machine that are like this one"),
        (10, "later than nine of ten starts on this machine that are like this one"),
    ],
)
def test_later_than_what(count: int, words: str) -> None:
    assert usual.late_words(start(999.0, past(count))) == words


def test_what_usually_remains() -> None:
    at = replace(start(30.0, past(), "load_begin"), verdict=replace(Snapshot().verdict, state="progressing"))
    assert usual.eta_s(at) == pytest.approx(100.0 - 20.0 - (30.0 - 21.0))
    none_passed = replace(at, log=LogState())
    assert usual.eta_s(none_passed) == pytest.approx(70.0)
    assert usual.eta_s(replace(none_passed, t=100.0)) is None
    assert usual.eta_s(replace(none_passed, verdict=replace(at.verdict, state="stalled"))) is None
    assert usual.words(at) == (
        "load end is usually line 20 after 1m00s; this log is at line 30 after 30s (5 starts: same model)"
    )
    assert usual.next_usual(start(1.0, past(), "load_begin", "load_end")) is None
    assert usual.words(start(1.0, None)) == ""
    assert usual.words(start(1.0, past(), "load_begin", "load_end")) == ""


@pytest.mark.parametrize(
    ("seen_t", "found_t", "took"), [(4.9, 0.0, None), (5.0, 0.0, 5.0), (None, 0.0, None), (9.0, 4.1, None)]
)
def test_a_ready_line_that_was_there_before_the_watch_has_no_time(
    seen_t: float | None, found_t: float, took: float | None
) -> None:
    ready = Milestone("ready", "end", "ready", 9, seen_t=seen_t)
    snapshot = replace(start(50.0, None), log=LogState(milestones=(ready,)), server_seen_t=found_t)
    assert usual.ready_after_s(snapshot) == took


@pytest.mark.parametrize(("silent_s", "unread"), [(29.5, False), (30.0, True)])
def test_how_old_a_look_at_the_processes_may_be(silent_s: float, unread: bool) -> None:
    world = World(2, gpu=False).to("weights").run(6)
    world.port = None
    world.step(Event(world.t, "probe", ProbeReading("procs", in_flight_since_t=world.t)))
    world.step(Event(world.t + silent_s, "tick"))
    assert (world.verdict.pending == "unknown") is unread


@pytest.mark.parametrize(("hung_s", "missing"), [(10.0, False), (10.5, True)])
def test_how_long_a_probe_may_take(hung_s: float, missing: bool) -> None:
    world = World(1).to("weights").run(3)
    probes = (ProbeStatus("port", in_flight_since_t=world.t - hung_s),)
    verdict = diagnose(replace(world.store.snapshot, t=world.t, probes=probes))
    assert any("the port probe has hung for" in gap.why for gap in verdict.missing) is missing


@pytest.mark.parametrize(("age_s", "state"), [(9.9, "progressing"), (10.0, "unknown")])
def test_how_long_no_process_may_be_seen(age_s: float, state: str) -> None:
    snapshot = Snapshot(t=100.0, server=Server(1, 1), server_seen_t=100.0 - age_s)
    found = diagnose(snapshot)
    assert (found.state, found.confidence) == (state, 0.9 if state == "unknown" else 0.4)
    talking = replace(snapshot, log=LogState(lines=1, last_activity_t=70.1))
    assert diagnose(talking).state == "progressing"
    assert diagnose(replace(talking, log=LogState(lines=1, last_activity_t=70.0))).state == state


def test_how_many_facts_and_other_nodes() -> None:
    assert MOST == 8
    left = tuple(Orphan(pid, 1, f"t{pid}", ports=(30000 + pid,)) for pid in (7, 8, 9))
    others = tuple(Candidate(pid, 1, "t", port=31000) for pid in (21, 22))
    world = World(2).to("weights").run(8)
    snapshot = replace(world.store.snapshot, orphans=left, candidates=others)
    facts = diagnose(snapshot).evidence
    assert len(facts) == 5
    assert facts[-1].text.startswith("not watched here") or any("that is gone" in fact.text for fact in facts)


def test_a_name_for_each_that_is_absent_needs_time() -> None:
    """A rank that never had a process: not said before the others are 20 s old."""
    from sgmon.analyse.diagnosis.absent import SEEN_S
    from sgmon.analyse.store import Store
    from sgmon.model import ServerArgs, ServerReading

    assert SEEN_S == 20.0
    for age_s, state in ((19.9, False), (20.0, True)):
        store = Store(1000.0 + age_s)
        args = ServerArgs(tp=2, model_path="/m")
        server = Server(100, 1, args=args, args_source="command line", version="0.5.17", started_epoch=1000.0)
        store.step(Event(0.0, "server", ServerReading(server)))
        there = Process(101, 100, 1, Role.WORKER, "TP0", title="sglang::scheduler_TP0", state="S", cpu_s=1.0)
        launcher = Process(100, 1, 1, Role.LAUNCHER, state="S", cpu_s=1.0)
        store.step(Event(0.0, "procs", ProcsReading((launcher, there), uid=0)))
        assert (store.snapshot.verdict.rule == "rank-absent") is state
