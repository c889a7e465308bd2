"""The limits at which a verdict changes: each test fails when its rule is loosened."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.analyse.diagnosis.verdict import HOLD_S, diagnose
from sgmon.model import PortReading, TcpPeer, Verdict
from tests.diagnosis.world import World

PHASES = ("dist_init", "weights", "kv_cache", "graphs", "http", "warmup")


def quiet(phase: str, tp: int = 2) -> World:
    """A start whose ranks have worked for a while and then do nothing that can be told apart."""
    world = World(tp, gpu=False).to(phase)
    for rank in world.ranks:
        rank.compute()
    world.run(6)
    for rank in world.ranks:
        rank.gloo_wait()
    return world


@pytest.mark.parametrize("phase", PHASES)
def test_nothing_is_suspect_before_fifteen_seconds(phase: str) -> None:
    world = quiet(phase)
    last = world.t
    world.run(60)
    first = next(t for t, verdict in world.history if verdict.state == "suspect")
    assert 15.0 <= first - last <= 20.0
    stalled = next(t for t, verdict in world.history if verdict.state == "stalled")
    assert 30.0 <= stalled - last <= 36.0


def test_a_missing_rank_is_suspect_after_fifteen_seconds_as_well() -> None:
    """Positive evidence takes the phase's usual silence away, not the lower bound."""
    world = quiet("weights", tp=4)
    for rank in world.ranks[:3]:
        rank.store_wait()
    last = world.t
    world.run(60)
    first_t, first = next((t, verdict) for t, verdict in world.history if verdict.state == "suspect")
    assert 15.0 <= first_t - last < 18.0
    assert first.odd_ranks == ("TP3",)
    assert 30.0 <= next(t for t, verdict in world.history if verdict.state == "stalled") - last < 33.0


def slow_then_progressing(held_s: float) -> tuple[Verdict, Verdict]:
    """The verdict when a softer state is found, and ``held_s`` later."""
    world = World(2, gpu=False).to("graphs")
    world["TP0"].compute()
    world["TP1"].compute()
    world.run(10)
    snapshot = world.store.snapshot
    assert snapshot.verdict.state == "progressing"
    slow = replace(snapshot, verdict=replace(snapshot.verdict, state="slow", rule="slow"))
    at_once = diagnose(slow)
    later = replace(slow, verdict=at_once, t=slow.t + held_s)
    return at_once, diagnose(later)


def test_a_softer_state_is_shown_when_it_has_held() -> None:
    at_once, soon = slow_then_progressing(HOLD_S - 0.1)
    assert (at_once.state, at_once.pending) == ("slow", "progressing")
    assert soon.state == "slow"
    assert slow_then_progressing(HOLD_S)[1].state == "progressing"
    assert 1.0 <= HOLD_S <= 3.0


def ready() -> World:
    world = World(2).to("ready")
    world.answers(200)
    for rank in world.ranks:
        rank.compute()
    world.run(10)
    assert world.verdict.state == "ready"
    return world


@pytest.mark.parametrize("answer", ["no_response", "timeout", "skipped"])
def test_ready_is_not_taken_back_at_once(answer: str) -> None:
    """A health check takes up to 20 s under load: one that is late is no doubt."""
    world = ready()
    world.answers(None, answer=answer)
    world.run(20)
    assert world.verdict.state == "ready"
    assert {verdict.state for t, verdict in world.history if t > world.t - 20} <= {"ready"}


def test_ready_is_taken_back_when_health_gives_no_response() -> None:
    world = ready()
    world.answers(None, answer="no_response")
    world.run(30)
    assert (world.verdict.state, world.verdict.rule) == ("unhealthy", "ready-no-response")


@pytest.mark.parametrize("answer", ["no_response", "timeout"])
def test_silence_of_health_counts_from_the_ready_line(answer: str) -> None:
    """On a busy machine /health was silent for a minute before the server was ready."""
    world = World(2).to("warmup")
    world.answers(None, answer=answer)
    world.run(60)
    world.to("ready")
    world.run(15)
    assert "unhealthy" not in world.states()
    world.run(15)
    assert world.verdict.rule == "ready-no-response"


def test_a_port_that_was_asked_before_the_ready_line_says_nothing_of_later() -> None:
    """The next look at the port comes late: the machine has load 60."""
    world = World(2).to("warmup").run(20)
    world.port = None  # no more readings
    world.to("ready").run(30)
    assert world.verdict.state == "progressing"
    world.port = PortReading("127.0.0.1", 30000, "refused")
    world.run(4)
    assert world.verdict.rule == "ready-refused"


def test_a_wanted_cpu_is_a_field_of_the_mark() -> None:
    """Starved by its run queue: for the last looks it happened to be asleep, but its demand was queued."""
    world = World(1)
    world[0].does(role="importing", state="R", wchan="0", cpu=0.02, wait=0.9)
    world.run(30)
    mark = world.store.snapshot.ranks[0].cpu_mark
    assert mark is not None and mark.queued
    world[0].does(state="S")
    world.run(4)
    assert (world.verdict.state, world.verdict.rule) == ("slow", "slow")
    assert world.verdict.next[0].command.startswith("top ")


def test_cpu_time_that_was_given_is_not_queued() -> None:
    world = World(1)
    world[0].does(role="importing", state="R", wchan="0", cpu=0.9)
    world.run(10)
    mark = world.store.snapshot.ranks[0].cpu_mark
    assert mark is not None and not mark.queued


def test_a_rank_without_a_peer_is_to_blame() -> None:
    """Sockets decide where nothing else does: everybody has an established peer but one."""
    world = quiet("dist_init", tp=3)
    peer = TcpPeer("10.0.0.1:43452", "10.0.0.2:52553", "ESTAB")
    for name in ("TP0", "TP1"):
        world[name].does(tcp=(peer,))
    world["TP2"].does(tcp=())
    world.run(60)
    assert world.verdict.odd_ranks == ("TP2",)
    assert any("no connection to its peers" in e.text for e in world.verdict.evidence)


def test_without_any_socket_nobody_is_to_blame_for_it() -> None:
    world = quiet("dist_init", tp=3)
    world.run(60)
    assert world.verdict.odd_ranks == ()
