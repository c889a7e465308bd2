"""Pauses in the readings, and processes whose time in the run queue cannot be read."""

from __future__ import annotations

import pytest

from sgmon.analyse.store import Store
from sgmon.model import Event, LogReading, Process, ProcsReading, Role, Server, ServerArgs, ServerReading

TEXT = "[2026-11-29 17:00:00 TP0] Init torch distributed begin.\n"


def start(cpu_of, times, state: str) -> list[tuple[float, str, str]]:
    """(t, state, headline) after each event of a server with one rank, whose CPU time is cpu_of(t)."""
    store = Store(1_795_000_000.0)
    server = Server(500, 1, args=ServerArgs(), args_source="command line", log_path="/l")
    events = [
        Event(0.0, "server", ServerReading(server)),
        Event(0.1, "log", LogReading("/l", "8:1", 0, TEXT, len(TEXT))),
    ]
    for t in times:
        launcher = Process(500, 1, 1, Role.LAUNCHER, state="S", threads=4, cpu_s=9.0)
        cpu_s = cpu_of(t)
        memory = round(cpu_s * 2e6)
        rank = Process(510, 500, 2, Role.WORKER, state=state, threads=60, cpu_s=cpu_s, rss_anon_bytes=memory)
        events.append(Event(t, "procs", ProcsReading((launcher, rank), uid=0)))
    last = max(times)
    events += [Event(t / 2, "tick") for t in range(2, int(2 * last))]
    found = []
    for event in sorted(events, key=lambda one: one.t):
        verdict = store.step(event).verdict
        found.append((event.t, verdict.state, verdict.headline))
    return found


def states(found: list[tuple[float, str, str]]) -> set[str]:
    return {state for _, state, _ in found}


def test_no_silence_passes_while_nobody_looks():
    """A machine so busy that sgmon did not run for 40 s: the rank got 0.1 s of a CPU meanwhile."""
    times = [float(t) for t in range(1, 21)] + [float(t) for t in range(61, 66)]
    found = start(lambda t: t * 0.9 if t <= 20 else 18.1 + (t - 61) * 0.9, times, "R")
    assert states(found) == {"progressing"}


def test_a_rank_that_slept_through_a_pause_is_still_found():
    times = [float(t) for t in range(1, 21)] + [float(t) for t in range(61, 66)]
    found = start(lambda t: min(t, 10.0), times, "S")
    assert "stalled" in {state for t, state, _ in found if t >= 61}
    assert "suspect" not in {state for t, state, _ in found if t < 20}


@pytest.mark.parametrize(("state", "hangs"), [("R", False), ("S", True)])
def test_a_starved_rank_without_schedstat(state, hangs):
    """2 % of a core: runnable at every look it is starved, asleep it does nothing."""
    found = start(lambda t: t * 0.02, [float(t) for t in range(1, 60)], state)
    assert ("stalled" in states(found)) is hangs


def after_an_hour(took_s: float, state: str, wchan: str | None) -> list[tuple[float, str]]:
    """(t, state of the verdict): sgmon was stopped for an hour and looks again. took_s: of the first look after it,
    which shows what was so before; the next one shows that the rank went on."""
    store = Store(1_795_000_000.0)
    server = Server(500, 1, args=ServerArgs(), args_source="command line", log_path="/l")
    store.step(Event(0.0, "server", ServerReading(server)))
    store.step(Event(0.1, "log", LogReading("/l", "8:1", 0, TEXT, len(TEXT))))
    found = []

    def look(t: float, cpu_s: float, took_s: float = 0.01) -> None:
        launcher = Process(500, 1, 1, Role.LAUNCHER, state="S", threads=4, cpu_s=9.0)
        memory = round(cpu_s * 2e6)
        rank = Process(
            510, 500, 2, Role.WORKER, state=state, wchan=wchan, threads=60, cpu_s=cpu_s, rss_anon_bytes=memory
        )
        events = (Event(t, "procs", ProcsReading((launcher, rank), uid=0), took_s), Event(t + 0.1, "tick"))
        found.extend((event.t, store.step(event).verdict.state) for event in events)

    for t in range(1, 10):
        look(float(t), t * 0.9)
    found.append((3609.0, store.step(Event(3609.0, "tick")).verdict.state))
    look(3610.0, 9 * 0.9, took_s)
    look(3611.0, 400.0)
    return found


@pytest.mark.parametrize(("state", "wchan"), [("S", None), ("D", "folio_wait_bit_common")])
def test_a_look_that_began_before_sgmon_was_stopped_shows_no_silence(state, wchan):
    found = after_an_hour(3600.5, state, wchan)
    assert {said for _, said in found} <= {"starting", "progressing"}, found


def test_a_look_that_began_after_it_shows_silence():
    assert "stalled" in {said for _, said in after_an_hour(0.5, "S", None)}
