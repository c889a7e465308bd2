"""Ends of real servers in a field test, that nobody had prepared for: who is named, and when it is not a crash."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.diagnosis.replay import first, replay, states


class End(NamedTuple):
    recording: str
    state: str
    headline: str
    odd: tuple[str, ...] = ()


ENDS = [
    # kill -9 of the launcher: its ranks die by PR_SET_PDEATHSIG within the same look
    End("field-h200-kill_capture", "crashed", "the launcher was killed by SIGKILL in the graph capture"),
    End("field-cpu-orph", "crashed", "the launcher was killed by SIGKILL while importing"),
    End("field-cpu-oom", "crashed", "TP1 (pid 1598) was killed by SIGKILL while importing", ("TP1",)),
    End("field-h200-orphans_new2", "crashed", "TP1: NCCL failed", ("TP1",)),
    # the rank ended, and was reaped with two others, before a second look: the status is the one that the log names
    End("cpu-tp2-live-kill9-import", "crashed", "TP0 (pid 1417) was killed by SIGKILL while importing", ("TP0",)),
    # the ranks load on for ten seconds after its end
    End(
        "cpu-tp2-live-kill9-detokenizer",
        "crashed",
        "the detokenizer (pid 2015) was killed by SIGKILL in the weight load",
    ),
    # a control group of the whole server: its launcher needs longer to end than the rank that was struck after it
    End("cpu-tp2-live-oom-all", "crashed", "the launcher was killed by the kernel's OOM killer while importing"),
    # without a log: an ordinary shutdown, in which the launcher ends itself by SIGKILL
    End("field-h200-ngram2", "ended", "its ranks have ended with status 0: the server was shut down"),
    End("field-h200-sigterm_load", "ended", "the launcher was ended by SIGTERM in the weight load"),
    End("field-h200-tp2_tee_rev", "ended", "the server was shut down by SIGTERM and is gone"),
]


@pytest.mark.parametrize("end", ENDS, ids=[end.recording for end in ENDS])
def test_the_end_has_the_right_name(end: End) -> None:
    _, last = replay(end.recording)
    assert last.verdict.state == end.state
    assert last.verdict.headline.startswith(end.headline)
    assert last.verdict.odd_ranks == end.odd


@pytest.mark.parametrize("end", [end for end in ENDS if end.state == "crashed"], ids=lambda end: end.recording)
def test_nobody_else_is_ever_named(end: End) -> None:
    """Until it is known, the headline says so."""
    changes, last = replay(end.recording)
    since = next(c.t for c in changes if c.verdict.state == "crashed" and c.verdict.since_t == last.verdict.since_t)
    said = [c.verdict for c in changes if c.t >= since]
    assert all(v.odd_ranks == end.odd or "not known yet" in v.headline for v in said), [v.headline for v in said]


def test_workers_that_uvicorn_starts_anew_are_no_crash() -> None:
    """--tokenizer-worker-num 2 on a slow machine: four workers are killed and started anew; it becomes ready."""
    changes, last = replay("field-cpu-tls")
    assert last.verdict.state == "ready"
    assert "crashed" not in states(changes)
    assert any("4 helpers ended" in fact.text for fact in last.verdict.evidence)


@pytest.mark.parametrize("name", ["field-h200-tp2_tee_rev", "field-h200-ngram2"])
def test_a_shutdown_is_never_called_a_crash(name: str) -> None:
    """With a log, and without one."""
    changes, _ = replay(name)
    assert "crashed" not in states(changes)
    assert first(changes, "ended") is not None


def test_the_end_that_the_oom_killer_may_have_made_is_nobody_elses_fault() -> None:
    """This recording has the count of the launcher's control group alone, which does not tell of the rank's."""
    _, last = replay("field-cpu-oom")
    assert not any("somebody else sent" in fact.text for fact in last.verdict.evidence)
