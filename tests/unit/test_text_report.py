"""The words of ``status`` and ``wait``: how long a start took, and when nothing is said about its end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sgmon.analyse.store import Store
from sgmon.export import text_report
from sgmon.history.baseline import summed
from sgmon.history.finished_start import FinishedStart, PassedMilestone, StartKey
from sgmon.model import Baseline, Snapshot, Verdict
from tests.memory import watches


def folded(text: str = "") -> Snapshot:
    store = Store(watches.EPOCH)
    for event in watches.events(text):
        store.step(event)
    return store.snapshot


def test_a_ready_server_says_how_long_its_start_took() -> None:
    ready = replace(folded(), verdict=Verdict("ready", "ready", since_t=0.6))
    assert text_report.as_text(ready)[0].startswith("READY after 1m01s: ")


def test_a_start_without_dates_that_was_over_before_the_watch_took_an_unknown_time() -> None:
    ready = replace(folded("The server is fired up and ready to roll!\n"), verdict=Verdict("ready", "ready"))
    assert text_report.ready_after_s(ready) is None
    assert text_report.as_text(replace(ready, t=0.6))[0].startswith("READY: ")
    assert text_report.as_text(replace(ready, t=40.0))[0].startswith("READY (for 40s): ")


def usual() -> Baseline:
    key = StartKey("/models/m")
    run = FinishedStart(
        key, 0.0, "ready", 61.0, 6, milestones=(PassedMilestone("load_begin", 23.0, 3, "TP0", "weights"),)
    )
    return summed([run], "the same")


@pytest.mark.parametrize("state", ["crashed", "stalled", "stopped", "ready", "unhealthy", "waiting-by-design"])
def test_no_time_to_ready_where_nothing_goes_on(state: str) -> None:
    going = replace(folded(), verdict=Verdict("progressing", ""), baseline=usual(), t=30.0)
    assert "ready in about" in text_report.eta_words(going)
    ended = replace(going, verdict=Verdict(state, ""))
    assert text_report.eta_words(ended) == ""
    assert text_report.as_json(ended)["usual"]["eta_s"] is None
