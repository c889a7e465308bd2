"""Replay a recording in fast time and keep how the verdict went."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from itertools import groupby

from sgmon.analyse.store import Store
from sgmon.model import Event, Snapshot, Verdict
from tests.diagnosis.verdict_rows import Said, words_of
from tests.recorded import RECORDINGS as RECORDINGS
from tests.recorded import recording

TICK_S = 0.5


@dataclass(frozen=True)
class Change:
    """The verdict as it was when its state, rule or phase changed."""

    t: float
    verdict: Verdict


@dataclass
class Replayed:
    """All changes of the verdict; of those in its words, too; the last snapshot."""

    last: Snapshot
    changes: list[Change] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    _kept: tuple[object, ...] = ()
    _words: tuple[object, ...] = ()

    def note(self, snapshot: Snapshot) -> None:
        verdict = snapshot.verdict
        now = (verdict.state, verdict.rule, verdict.phase, verdict.odd_ranks)
        if now != self._kept:
            self.changes.append(Change(snapshot.t, verdict))
        if verdict is not self.last.verdict and (words := words_of(verdict)) != self._words:
            self.said.append(Said(snapshot.t, snapshot.phase, verdict))
            self._words = words
        self.last, self._kept = snapshot, now


def replay(name: str, *, until: float = 1e9) -> tuple[list[Change], Snapshot]:
    """All changes of the verdict, and the last snapshot. Ticks come every half second, as the live source gives them."""
    found = _replayed(name, until)
    return found.changes, found.last


@cache
def played(name: str) -> Replayed:
    """A whole recording, replayed once in a run of the tests."""
    return _replayed(name, 1e9)


def _replayed(name: str, until: float) -> Replayed:
    epoch, events = recording(name)
    store = Store(epoch)
    found = Replayed(store.snapshot)
    tick = 0.0
    for event in events:
        if event.t > until:
            break
        while tick + TICK_S < event.t:
            tick += TICK_S
            found.note(store.step(Event(tick, "tick")))
        found.note(store.step(event))
    return found


def states(changes: list[Change]) -> list[str]:
    """The states in the order in which they came, repeats left out."""
    return [state for state, _ in groupby(change.verdict.state for change in changes)]


def first(changes: list[Change], *wanted: str, after: float = 0.0) -> Change | None:
    """The first change into one of these states at or after a time."""
    return next((c for c in changes if c.verdict.state in wanted and c.t >= after), None)
