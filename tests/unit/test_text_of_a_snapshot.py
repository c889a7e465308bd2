"""The words of ``status`` and ``wait``: how long a start took, and when nothing is said about its end."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.analyse.diagnosis.usual import ready_after_s
from sgmon.analyse.store import Store
from sgmon.export.json import status_report
from sgmon.export.text import as_text, eta_words
from sgmon.history.baseline import summed
from sgmon.history.finished_start import FinishedStart, PassedMilestone, StartKey
from sgmon.model import Baseline, Event, ServerReading, Snapshot, Verdict
from tests.memory import watches
from tests.ui import fakes


def folded(text: str = "", log_t: float = 64.0) -> Snapshot:
    store = Store(watches.EPOCH)
    for event in watches.events(text, log_t):
        store.step(event)
    return store.snapshot


def test_a_process_that_sleeps_where_the_kernel_does_not_say_is_in_no_call() -> None:
    snapshot = fakes.ready()
    processes = tuple(replace(one, call=None, wchan=None) for one in snapshot.procs.processes)
    words = as_text(replace(snapshot, procs=replace(snapshot.procs, processes=processes)))
    assert any("state S" in line for line in words)
    assert not any("None" in line for line in words)


def test_one_line_is_one_line() -> None:
    one = replace(fakes.ready(), log=replace(fakes.ready().log, lines=1))
    assert any(": 1 line, " in line for line in as_text(one))


def test_who_finds_no_server_is_told_where_to_look() -> None:
    store = Store(watches.EPOCH)
    store.step(Event(1.0, "server", ServerReading(None, looked_for="vllm serve")))
    last = store.step(Event(2.0, "tick"))
    assert last.verdict.rule == "no-server"
    assert any("sgmon doctor" in line for line in as_text(last))


def test_a_ready_server_says_how_long_its_start_took() -> None:
    ready = replace(folded(), verdict=Verdict("ready", "ready", since_t=64.0))
    assert as_text(ready)[0].startswith("READY after 1m01s: ")


def test_a_start_without_dates_that_was_over_before_the_watch_took_an_unknown_time() -> None:
    ready = replace(folded("The server is fired up and ready to roll!\n", 0.5), verdict=Verdict("ready", "ready"))
    assert ready_after_s(ready) is None
    assert as_text(replace(ready, t=0.6))[0].startswith("READY: ")
    assert as_text(replace(ready, t=40.0))[0].startswith("READY (for 40s): ")


def usual() -> Baseline:
    key = StartKey("/models/m")
    run = FinishedStart(
        key, 0.0, "ready", 61.0, 6, milestones=(PassedMilestone("load_begin", 23.0, 3, "TP0", "weights"),)
    )
    return summed([run], "the same")


@pytest.mark.parametrize("state", ["crashed", "stalled", "stopped", "ready", "unhealthy", "waiting-by-design"])
def test_no_time_to_ready_where_nothing_goes_on(state: str) -> None:
    going = replace(folded(), verdict=Verdict("progressing", ""), baseline=usual(), t=30.0)
    assert "ready in about" in eta_words(going)
    ended = replace(going, verdict=Verdict(state, ""))
    assert eta_words(ended) == ""
    assert (report := status_report(ended).usual) is not None and report.eta_s is None
