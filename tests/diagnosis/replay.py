"""Replay a recording in fast time and keep how the verdict went."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from sgmon.analyse.store import Store
from sgmon.model import Event, Snapshot, Verdict
from tests.recorded import RECORDINGS as RECORDINGS
from tests.recorded import recording

TICK_S = 0.5


@dataclass(frozen=True)
class Change:
    """The verdict as it was when its state, rule or phase changed."""

    t: float
    verdict: Verdict


def replay(name: str, *, until: float = 1e9) -> tuple[list[Change], Snapshot]:
    """All changes of the verdict, and the last snapshot. Ticks come every half second, as the live source gives them."""
    epoch, events = recording(name)
    store = Store(epoch)
    changes: list[Change] = []
    last: tuple[object, ...] = ()
    tick = 0.0
    snapshot = store.snapshot
    for event in events:
        if event.t > until:
            break
        while tick + TICK_S < event.t:
            tick += TICK_S
            snapshot = store.step(Event(tick, "tick"))
            last = _note(snapshot, last, changes)
        snapshot = store.step(event)
        last = _note(snapshot, last, changes)
    return changes, snapshot


def _note(snapshot: Snapshot, last: tuple[object, ...], changes: list[Change]) -> tuple[object, ...]:
    verdict = snapshot.verdict
    now = (verdict.state, verdict.rule, verdict.phase, verdict.odd_ranks)
    if now != last:
        changes.append(Change(snapshot.t, verdict))
    return now


def states(changes: list[Change]) -> list[str]:
    """The states in the order in which they came, repeats left out."""
    return [state for state, _ in groupby(change.verdict.state for change in changes)]


def first(changes: list[Change], *wanted: str, after: float = 0.0) -> Change | None:
    """The first change into one of these states at or after a time."""
    return next((c for c in changes if c.verdict.state in wanted and c.t >= after), None)
