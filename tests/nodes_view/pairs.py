"""Two real recordings of the two nodes of one server, played as two machines of one watch.

They were taken on one machine, each with a watch of its own; node 1 was started 25 s after node 0.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from sgmon.analyse.nodes.store import NodesStore
from sgmon.model import Event, NodeReading, ProcsReading, Snapshot
from tests.recorded import recording

TICK_S = 0.5
NODES = {"node-a": "cpu-nnodes2-node0", "node-b": "cpu-nnodes2-node1"}
Change = Callable[[Event], "Event | None"]


def events_of(node: str, base: float, *, offset_s: float = 0.0, change: Change | None = None) -> Iterator[Event]:
    """One node's events in the time of the watch. offset_s: its clock is off by this, and that was measured.

    change: makes another event of each, or None of it.
    """
    epoch, events = recording(NODES[node])
    shift_s = epoch - base
    yield Event(0.0, "node", NodeReading(node, "live", offset_s=offset_s, offset_error_s=0.01), node=node)
    for event in events:
        moved = replace(_named(event, node), t=event.t + shift_s, node=node)
        changed = change(moved) if change is not None else moved
        if changed is not None:
            yield changed


def _named(event: Event, node: str) -> Event:
    """The rank that an old version inferred for the child of node 1, as it is inferred today."""
    reading = event.reading
    if node != "node-b" or not isinstance(reading, ProcsReading):
        return event
    processes = tuple(replace(p, rank="TP1") if p.rank_inferred else p for p in reading.processes)
    return replace(event, reading=replace(reading, processes=processes))


def base_epoch() -> float:
    """The wall clock at which the watch of both begins."""
    return recording(NODES["node-a"])[0]


def play(streams: Sequence[Iterable[Event]], base: float, until: float = 1e9) -> Iterator[Snapshot]:
    """A snapshot each half second of the watch, up to ``until``, and three seconds more of ticks at the end."""
    store, tick = NodesStore(base), 0.0
    for event in heapq.merge(*streams, key=lambda event: event.t):
        if event.t > until:
            break
        while tick + TICK_S < event.t:
            tick += TICK_S
            yield store.step(Event(tick, "tick"))
        store.step(event)
    for _ in range(6):
        tick += TICK_S
        yield store.step(Event(tick, "tick"))


def told(snapshots: Iterable[Snapshot]) -> list[tuple[float, str, str]]:
    """(t, state, headline) whenever the state or the rule changed."""
    found: list[tuple[float, str, str]] = []
    last: object = None
    for snapshot in snapshots:
        verdict = snapshot.verdict
        if (verdict.state, verdict.rule) != last:
            last = (verdict.state, verdict.rule)
            found.append((snapshot.t, verdict.state, verdict.headline))
    return found
