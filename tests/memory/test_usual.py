"""The words and numbers from a baseline; without one there are none."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse.diagnosis import usual
from sgmon.analyse.store import Store
from sgmon.export.json import status_report
from sgmon.export.text import eta_words, progress_line
from sgmon.history.baseline import summed
from sgmon.history.from_snapshot import start_of
from sgmon.model import Event, Snapshot
from tests.memory import watches


def _at(t: float, lines: int) -> Snapshot:
    """A start that is ``t`` seconds old and has printed so many lines, with one earlier start as its baseline."""
    log = "".join(line + "\n" for line in watches.log_lines().splitlines()[:lines])
    store = Store(watches.EPOCH)
    for event in watches.events(log):
        store.step(replace(event, t=t - 1.0) if event.kind == "log" else event)
    done = Store(watches.EPOCH)
    for event in watches.events():
        done.step(event)
    base = summed([start_of(done.snapshot, "ready")], "same model", narrow=True)
    store.step(Event(0.7, "baseline", base))
    return replace(store.snapshot, t=t)


def test_lines_count_from_the_beginning_of_this_start() -> None:
    """An earlier start has written to the same file."""
    now = _at(99.0, 4)
    later = replace(now.log, lines=104, run_line=101)
    assert "this log is at line 4 after" in usual.words(replace(now, log=later))
    moved = [replace(one, line=one.line + 100) for one in now.log.milestones]
    begun = start_of(replace(now, log=replace(later, milestones=tuple(moved))), "crashed")
    plain = start_of(now, "crashed")
    assert (begun.lines, begun.milestones) == (plain.lines, plain.milestones)


def test_the_next_milestone_and_how_late_it_is() -> None:
    now = _at(99.0, 4)
    assert usual.words(now) == (
        "kv alloc is usually line 5 after 54s; this log is at line 4 after 1m40s (1 start: same model)"
    )
    assert usual.is_late(now)
    assert usual.late_words(now) == "later than the one start on this machine that is like this one"
    assert not usual.is_late(_at(40.0, 4))


def test_starts_with_other_caches_make_late_a_lot_later() -> None:
    now = _at(99.0, 4)
    assert now.baseline is not None
    wide = replace(now, baseline=replace(now.baseline, narrow=False))
    assert not usual.is_late(wide)
    assert usual.is_late(replace(wide, t=250.0))


def test_the_time_that_remains() -> None:
    assert usual.eta_s(_at(30.0, 3)) == 61.0 - 23.0 - 8.0  # load_begin was passed at 22 s of the watch
    assert usual.eta_s(_at(200.0, 3)) is None
    words = progress_line(_at(30.0, 3))
    assert words.endswith("ready in about 30s (usually 1m01s, 1 start)")
    assert "later than usual" in progress_line(_at(200.0, 3))


def test_a_first_start_has_no_number() -> None:
    now = replace(_at(30.0, 3), baseline=None, usual_s=())
    assert (usual.words(now), usual.eta_s(now), eta_words(now)) == ("", None, "")
    assert status_report(now).usual is None


def test_phases_reach_the_rules() -> None:
    assert dict(_at(30.0, 3).usual_s)["weights"] == 31.0
