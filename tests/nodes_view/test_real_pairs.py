"""Real recordings of the two nodes of one server: what is said over time, healthy and with one node made to fail."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sgmon.analyse.nodes.store import NodesStore
from sgmon.history.from_snapshot import start_of
from sgmon.model import Event, LogReading, NodeReading, ProcsReading, RankState, Role, ServerReading, Snapshot
from tests.nodes_view.pairs import base_epoch, events_of, play, told

FALSE = {"suspect", "stalled", "stopped", "crashed", "unknown", "will-fail", "unhealthy"}
#: in seconds of the watch: node 1 has its rank from 48.2 on and loads, the whole is ready at 56
AT_S, READY_S = 48.5, 64.0

_FORM = "%Y-%m-%d %H:%M:%S"

Make = Callable[[Event], "Event | None"]


def _after(at_s: float, make: Make) -> Make:
    return lambda event: event if event.t < at_s else make(event)


def _killed(event: Event) -> Event | None:
    """Its rank is gone, and writes no line any more."""
    return None if event.kind == "log" else _workers(event, gone=True, exit_signal=9)


def _paused(event: Event) -> Event | None:
    return None if event.kind == "log" else _workers(event, state="T")


def _workers(event: Event, **fields: object) -> Event:
    """The same reading with its workers in another state."""
    reading = event.reading
    if not isinstance(reading, ProcsReading):
        return event
    processes = tuple(replace(p, **fields) if p.role is Role.WORKER else p for p in reading.processes)
    return replace(event, reading=replace(reading, processes=processes))


@pytest.mark.parametrize("offset_s", [0.0, 100.0, -7 * 3600.0], ids=["same clock", "100 s ahead", "another zone"])
def test_a_healthy_start_of_two_nodes_is_ready_once_and_never_called_anything_bad(offset_s: float) -> None:
    """``offset_s``: what the transport would have measured, with readings that were moved by as much."""
    base = base_epoch()
    streams = [events_of("node-a", base), _off(events_of("node-b", base, offset_s=offset_s), offset_s)]
    said = told(play(streams, base, until=READY_S))
    states = [state for _, state, _ in said]
    assert not FALSE & set(states)
    assert states.count("ready") == 1 and states[-1] == "ready"
    assert said[-1][2] == "node-a: the server is ready on 127.0.0.1:31000"
    assert 55 <= said[-1][0] <= 58


_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


def _off(events: Iterable[Event], offset_s: float) -> Iterator[Event]:
    """What a node's wall clock wrote, off by this: the start of its server, and the stamps in its log."""

    def later(stamp: re.Match[str]) -> str:
        return f"{datetime.strptime(stamp[0], _FORM) + timedelta(seconds=offset_s):{_FORM}}"

    for event in events:
        reading = event.reading
        if isinstance(reading, ServerReading) and reading.server is not None and reading.server.started_epoch:
            server = replace(reading.server, started_epoch=reading.server.started_epoch + offset_s)
            event = replace(event, reading=replace(reading, server=server))
        elif isinstance(reading, LogReading):
            event = replace(event, reading=replace(reading, text=_STAMP.sub(later, reading.text)))
        yield event


def test_the_ranks_of_both_nodes_are_in_one_table() -> None:
    base = base_epoch()
    *_, last = play([events_of("node-a", base), events_of("node-b", base)], base, until=READY_S)
    assert [(rank.name, rank.node) for rank in last.ranks] == [("TP0", "node-a"), ("TP1", "node-b")]
    assert last.log.ready_line is not None and {m.rank for m in last.log.milestones} >= {"TP0", "TP1"}


@pytest.mark.parametrize("offset_s", [0.0, 100.0, -7 * 3600.0])
def test_the_finished_start_holds_both_nodes_in_one_time(offset_s: float) -> None:
    """Milestones of node 1 are as many seconds after the head's beginning as they were, whatever its clock shows."""
    base = base_epoch()
    streams = [events_of("node-a", base), _off(events_of("node-b", base, offset_s=offset_s), offset_s)]
    *_, last = play(streams, base, until=READY_S)
    run = start_of(last, "ready")
    at_s = {(one.name, one.rank): one.at_s for one in run.milestones}
    assert {"TP0", "TP1"} <= {rank for _, rank in at_s}
    assert abs(at_s["load_begin", "TP1"] - at_s["load_begin", "TP0"]) <= 3.0
    assert run.duration_s is not None and abs(run.duration_s - 56.0) <= 3.0
    assert run.key.parallel == "tp2 dp1 pp1 n2"


def test_while_node_1_is_late_it_is_said_that_it_has_not_joined() -> None:
    """Node 1 is made a minute later than it was: node 0 stays at its rendezvous, as it is recorded there."""
    base = base_epoch()

    def hold(event: Event) -> Event | None:
        """Node 0 at the rendezvous: what follows was said only after node 1 had come."""
        return event if event.t < 44.0 else None

    def late() -> Iterator[Event]:
        for second in range(80):
            yield Event(float(second), "server", ServerReading(looked_for="a server"), node="node-b")
        for event in events_of("node-b", base):
            yield replace(event, t=event.t + 60.0)

    def still() -> Iterator[Event]:
        last: dict[str, Event] = {}
        for event in events_of("node-a", base, change=hold):
            last[event.kind] = event
            yield event
        for second in range(44, 120):
            yield replace(last["procs"], t=float(second))

    said = told(play([still(), late()], base, until=98.0))
    waits = [headline for _, state, headline in said if state == "waiting-by-design"]
    assert waits and all(
        words.startswith("node-b: no server runs there yet; 1 rank on node-a waits") for words in waits
    )
    assert said[-1][1] == "progressing"
    assert said[-1][2].startswith("node-b: ") and said[-1][2].endswith("; 1 rank on node-a waits")


def test_the_rank_of_node_1_is_killed() -> None:
    base = base_epoch()
    quiet = _after(AT_S, lambda event: None if event.kind == "log" else event)  # node 0 gets no further either
    streams = [events_of("node-a", base, change=quiet), events_of("node-b", base, change=_after(AT_S, _killed))]
    said = told(play(streams, base, until=52.0))
    t, headline = next((t, words) for t, state, words in said if state == "crashed")
    assert headline.startswith("node-b: TP1 (pid ") and "was killed by SIGKILL in the weight load" in headline
    assert t - AT_S <= 1.5
    assert said[-1][1] == "crashed"


def test_the_rank_of_node_1_is_paused() -> None:
    base = base_epoch()
    quiet = _after(AT_S, lambda event: None if event.kind == "log" else event)
    streams = [events_of("node-a", base, change=quiet), events_of("node-b", base, change=_after(AT_S, _paused))]
    said = told(play(streams, base, until=51.0))
    t, headline = next((t, words) for t, state, words in said if state == "stopped")
    assert headline.startswith("node-b: TP1 is paused (SIGSTOP) in the weight load") and t - AT_S <= 1.5


@pytest.mark.parametrize("state", ["", "stale", "lost"])
def test_the_link_to_node_1_is_cut_in_the_load(state: str) -> None:
    """state: what the transport says; "": nothing."""
    base = base_epoch()

    def cut(event: Event) -> Event | None:
        if state and event.kind == "procs" and event.t < AT_S + 1.5:
            return Event(event.t, "node", NodeReading("node-b", state, since_t=AT_S), node="node-b")
        return None

    streams = [events_of("node-a", base), events_of("node-b", base, change=_after(AT_S, cut))]
    *_, last = snapshots = list(play(streams, base, until=READY_S))
    said = told(snapshots)
    assert not (FALSE - {"unknown"}) & {one[1] for one in said}
    assert last.verdict.state == "ready"  # node 0 proves it: the warm-up goes through all ranks
    assert last.verdict.confidence < 0.9
    assert any("node-b: no word for " in fact.text for fact in last.verdict.evidence)
    assert {rank.name: rank.state for rank in last.ranks}["TP1"] is RankState.UNKNOWN


def _gist(snapshot: Snapshot) -> object:
    verdict = snapshot.verdict
    ranks = [(rank.node, rank.name, rank.state, rank.phase) for rank in snapshot.ranks]
    return verdict.state, verdict.rule, verdict.headline, verdict.nodes, ranks


_BASE = base_epoch()
_STREAMS = {
    "ready": [list(events_of("node-a", _BASE)), list(events_of("node-b", _BASE))],
    "killed": [list(events_of("node-a", _BASE)), list(events_of("node-b", _BASE, change=_after(AT_S, _killed)))],
}


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), what=st.sampled_from(["ready", "killed"]))
def test_any_interleaving_of_the_nodes_ends_in_the_same_verdict(seed: int, what: str) -> None:
    """Each node's events keep their order; how the two streams come together is another each time."""
    until = READY_S if what == "ready" else 51.0
    streams = [[event for event in stream if event.t <= until] for stream in _STREAMS[what]]
    expected = list(play(streams, _BASE))[-1]
    dice, store = random.Random(seed), NodesStore(_BASE)
    left = [list(reversed(stream)) for stream in streams]
    while any(left):
        stream = dice.choice([one for one in left if one])
        for _ in range(dice.randint(1, 30)):
            if stream:
                store.step(stream.pop())
        if dice.random() < 0.5:
            store.step(Event(store.snapshot.t, "tick"))
    last = expected
    for step in range(1, 7):
        last = store.step(Event(expected.t + 0.5 * step, "tick"))
    assert _gist(last) == _gist(expected)
