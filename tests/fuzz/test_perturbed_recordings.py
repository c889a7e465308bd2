"""Recorded starts whose readings are lost, late, doubled, out of order or cut: no exception, no wrong name, no false crash.

SGMON_FUZZ_RECORDINGS: how many perturbations of each recording (default 2; 100 take about ten minutes).
"""

from __future__ import annotations

import os
import random
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sgmon.analyse.store import Store
from sgmon.export.json import status_report
from sgmon.export.text import as_text
from sgmon.model import Event, PortReading, Snapshot
from tests.recorded import recording

EXAMPLES = int(os.environ.get("SGMON_FUZZ_RECORDINGS", "2"))
#: confidence above which a wrong name is a defect
SURE = 0.8

HEALTHY = (
    "cpu-tp2-tiny",
    "cpu-dp2-tiny",
    "cpu-nnodes2-node1",
    "gpu-tp2",
    "h200x2-cold",
    "vllm-cpu-tp2-tiny",
    "vllm-h200-tp2-eager",
)
#: recording -> the ranks that are at fault
CULPRITS = {
    "cpu-tp2-sigstop-load": {"TP1"},
    "cpu-tp2-kill9-load": {"TP1"},
    "cpu-tp2-live-hang-load": {"TP1"},
    "cpu-tp2-live-hang-warmup": {"TP1"},
    "cpu-bad-shard": {"TP1"},
    "gpu-tp2-stop-capture": {"TP1"},
    "h200x2-never-enters": {"TP1"},
    "demo-stuck-rank": {"TP5"},
    "vllm-cpu-tp2-kill9-load": {"TP1"},
    "vllm-cpu-tp2-sigstop-load": {"TP1"},
}


@lru_cache(maxsize=4)
def start_of(name: str) -> tuple[float, tuple[Event, ...]]:
    """Epoch and events, up to the end that was asked for."""
    epoch, read = recording(name)
    store, events = Store(epoch), []
    for event in read:
        if store.step(event).verdict.state == "ended":
            break
        events.append(_with_own_port(event) if name in HEALTHY else event)
    return epoch, tuple(events)


def _with_own_port(event: Event) -> Event:
    """Where the first recordings were made, a process outside of the server's tree listened for it (a sandbox)."""
    if not isinstance(event.reading, PortReading):
        return event
    listeners = tuple(replace(one, ours=True) for one in event.reading.listeners)
    return replace(event, reading=replace(event.reading, listeners=listeners))


@st.composite
def perturbations(draw: st.DrawFn) -> dict[str, float]:
    """Shares of the events that are lost, doubled and late, the longest delay in seconds, and what is cut off."""
    return {
        "seed": draw(st.integers(0, 2**32)),
        "lost": draw(st.sampled_from([0.0, 0.05, 0.3, 0.7])),
        "doubled": draw(st.sampled_from([0.0, 0.1, 0.5])),
        "late": draw(st.sampled_from([0.0, 0.1, 0.5])),
        "delay_s": draw(st.sampled_from([0.2, 1.0, 4.0])),
        "begin": draw(st.sampled_from([0.0, 0.0, 0.2, 0.6])),
        "end": draw(st.sampled_from([1.0, 1.0, 0.8, 0.4])),
    }


def perturbed(events: tuple[Event, ...], how: dict[str, float]) -> list[Event]:
    """The events as they would come. A late one keeps its own time and comes behind younger ones."""
    chance = random.Random(how["seed"])
    kept = events[int(len(events) * how["begin"]) : int(len(events) * how["end"]) or 1]
    coming: list[tuple[float, int, Event]] = []
    for number, event in enumerate(kept):
        if chance.random() < how["lost"]:
            continue
        delay_s = chance.uniform(0.0, how["delay_s"]) if chance.random() < how["late"] else 0.0
        coming.append((event.t + delay_s, number, event))
        if chance.random() < how["doubled"]:
            coming.append((event.t + delay_s + chance.uniform(0.0, 1.0), number, event))
    return [event for _, _, event in sorted(coming, key=lambda item: item[:2])]


def played(name: str, how: dict[str, float]) -> list[Snapshot]:
    """A snapshot for each verdict that differs from the one before; each can be shown."""
    epoch, events = start_of(name)
    store, changes = Store(epoch), []
    for event in perturbed(events, how):
        snapshot = store.step(event)
        if not changes or snapshot.verdict != changes[-1].verdict:
            changes.append(snapshot)
    for snapshot in changes[-3:]:
        assert as_text(snapshot) and status_report(snapshot)
    return changes


FUZZ = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate,),  # no shrinking: a replay is slow, and the perturbation is short already
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("name", HEALTHY)
@FUZZ
@given(how=perturbations())
def test_a_healthy_start_never_crashes(name: str, how: dict[str, float]) -> None:
    for snapshot in played(name, how):
        verdict = snapshot.verdict
        assert verdict.state not in ("crashed", "stopped", "will-fail"), f"{snapshot.t:.1f} s: {verdict.headline}"
        assert not verdict.odd_ranks or verdict.confidence <= SURE, f"{snapshot.t:.1f} s: {verdict.headline}"


@pytest.mark.parametrize("name", CULPRITS)
@FUZZ
@given(how=perturbations())
def test_a_wrong_rank_is_never_named_with_confidence(name: str, how: dict[str, float]) -> None:
    for snapshot in played(name, how):
        verdict = snapshot.verdict
        wrong = set(verdict.odd_ranks) - CULPRITS[name]
        assert not wrong or verdict.confidence <= SURE, f"{snapshot.t:.1f} s: {verdict.confidence} {verdict.headline}"


def test_an_older_reading_says_nothing_new() -> None:
    """A dump of somebody else held a process for a moment; that reading comes four seconds late."""
    epoch, events = start_of("gpu-tp2")
    store = Store(epoch)
    late = next(event for event in events if "t" in {p.state for p in getattr(event.reading, "processes", ())})
    for event in events:
        before = store.step(event)
        if event.kind == "procs" and event.t >= late.t + 4.0:
            break
    assert store.step(late) == before


def test_a_reading_of_an_unknown_process_or_an_empty_one_is_no_exception() -> None:
    """Each reading of a recording with its tuples emptied."""
    epoch, events = start_of("h200x2-never-enters")
    store = Store(epoch)
    for event in events:
        fields = getattr(event.reading, "__struct_fields__", ())
        empty = {name: () for name in fields if isinstance(getattr(event.reading, name), tuple)}
        store.step(
            replace(event, reading=replace(event.reading, **empty)) if empty and event.kind != "log" else event
        )
    assert as_text(store.snapshot)
