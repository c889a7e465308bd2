"""A finished start has the times of its own clock, also where the log's clock is another time zone's."""

from __future__ import annotations

from sgmon.analyse.store import Store
from sgmon.history.finished_start import FinishedStart
from sgmon.history.from_snapshot import start_of
from sgmon.model import Event, LogReading, Snapshot
from tests.memory import watches

#: seconds after the log's second 0 at which each line is printed (see ``watches.log_lines``)
PRINTED = (5.0, 20.0, 22.0, 52.0, 53.0, 60.0)
HOUR = 3600.0


def live(zone_s: float) -> Snapshot:
    """A watch from the beginning; the log's clock is ``zone_s`` ahead."""
    store = Store(watches.EPOCH)
    for event in watches.events("x\n", 0.5):
        store.step(event)
    for line, t in zip(watches.log_lines(watches.EPOCH + zone_s).splitlines(keepends=True), PRINTED, strict=True):
        store.step(Event(t + 0.2, "log", LogReading(path="/nowhere/server.log", text=line, kind="pipe", size=500)))
    return store.snapshot


def times(start: FinishedStart) -> list[tuple[str, int]]:
    return [(passed.name, int(passed.at_s)) for passed in start.milestones]


def test_the_zone_of_the_log_does_not_change_its_times() -> None:
    expected = times(start_of(live(0.0), "ready"))
    assert expected[0] == ("args", 6) and expected[-1] == ("ready", 61)
    for zone_s in (-5 * HOUR, -0.25 * HOUR, 0.25 * HOUR, 5.5 * HOUR):
        start = start_of(live(zone_s), "ready")
        assert times(start) == expected
        assert start.duration_s is not None and int(start.duration_s) == 61


def test_a_log_of_another_zone_that_was_complete_before_the_watch_gives_no_duration() -> None:
    """Neither its dates nor the time when it was read say when the start was over."""
    store = Store(watches.EPOCH)
    for event in watches.events(watches.log_lines(watches.EPOCH + 2 * HOUR), 0.5):
        store.step(event)
    assert start_of(store.snapshot, "ready").duration_s is None
    assert start_of(store.snapshot, "stalled").duration_s is not None
