"""Starts on one and two H200s that sgmon itself recorded from second 0: SGLang 0.5.17 and vLLM 0.22, tp 1 and 2, random weights.

Faults were done by a script beside them: seconds are those of its own clock.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest

from sgmon.model import Snapshot
from tests.diagnosis.replay import Change, first, replay

ALARMS = ("suspect", "stalled", "stopped", "crashed", "unknown", "unhealthy", "will-fail")


class Fault(NamedTuple):
    """t: when it was done; over_t: when it was taken back, None: never. state and odd: what must be said of it."""

    name: str
    t: float
    state: str
    odd: tuple[str, ...]
    over_t: float | None = None
    headline: str = ""


FAULTS = (
    Fault("vllm-live-h200-stop-load", 36.3, "stopped", ("TP1",), 81.3),
    Fault("vllm-live-h200-stop-capture", 40.2, "stopped", ("TP1",), 80.3),
    Fault("vllm-live-h200-kill-capture", 42.1, "crashed", ("TP1",)),
    Fault("vllm-live-h200-kill-ready", 45.8, "crashed", ("TP1",)),
    Fault("h200x2-live-stop-load", 55.0, "stopped", ("TP1",), 95.0),
    Fault("h200x2-live-kill-ready", 72.4, "crashed", ("TP1",)),
    Fault("h200x2-live-dp2-kill-ready", 162.5, "crashed", ("DP1",), headline="after it was ready"),
    Fault("h200x2-live-kill-launcher", 62.6, "crashed", (), headline="the launcher"),
    Fault("h200x2-live-kill-warmup", 50.1, "crashed", ("TP1",)),
    Fault("vllm-live-h200-kill-load", 34.4, "crashed", ()),
    Fault("h200-live-kill-load", 25.1, "crashed", (), headline="the scheduler"),
)
#: name -> seconds of the SIGTERM that ended it, and whether it had been ready
HEALTHY = {"vllm-live-h200-cold": (131.7, True), "h200x2-live-cold": (157.0, False)}


@cache
def played(name: str) -> tuple[list[Change], Snapshot]:
    return replay(name)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_said_within_two_seconds_and_nothing_before(fault):
    changes, _ = played(fault.name)
    assert [(c.t, c.verdict.headline) for c in changes if c.t < fault.t and c.verdict.state in ALARMS] == []
    said = first(changes, fault.state, after=fault.t)
    assert said is not None and said.t - fault.t <= 2.0  # several deaths: a look later, as Ctrl-C begins alike
    assert said.verdict.odd_ranks == fault.odd
    assert fault.headline in said.verdict.headline


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.over_t is not None], ids=lambda fault: fault.name)
def test_what_goes_on_is_let_go_of_and_gets_ready(fault):
    changes, _ = played(fault.name)
    later = [c for c in changes if c.t > fault.over_t]
    assert later[0].t - fault.over_t <= 1.5 and later[0].verdict.state == "progressing"
    states = [c.verdict.state for c in later]
    assert states[: states.index("ended")].count("ready") == 1
    assert not set(states) & set(ALARMS)


def test_the_launcher_is_the_first_of_those_that_died_with_it():
    _, last = played("h200x2-live-kill-launcher")
    assert last.verdict.state == "crashed" and last.verdict.odd_ranks == ()
    assert last.verdict.headline.startswith("the launcher was killed by SIGKILL")


def test_a_200_of_before_the_end_of_a_replica_is_no_evidence_after_it():
    """/health was asked a second before the kill; the next request waited for the dead replica until the end."""
    changes, last = played("h200x2-live-dp2-kill-ready")
    said = [one.text for c in changes if c.verdict.state == "crashed" for one in c.verdict.evidence]
    assert said and not any("200" in text for text in said)
    asked = next(probe.last_ok_t for probe in last.probes if probe.name == "port")
    assert asked is not None and asked < 162.5


def test_a_killed_worker_is_named_though_no_line_names_it():
    _, last = played("vllm-live-h200-kill-capture")
    assert last.verdict.odd_ranks == ("TP1",) and "SIGKILL" in last.verdict.headline


@pytest.mark.parametrize("name", HEALTHY)
def test_a_cold_start_without_one_false_word(name):
    sigterm_t, ready = HEALTHY[name]
    changes, last = played(name)
    assert [(c.t, c.verdict.headline) for c in changes if c.t < sigterm_t and c.verdict.state in ALARMS] == []
    assert (first(changes, "ready") is not None) is ready
    assert last.verdict.state == "ended"


def test_a_model_folder_without_a_config_is_told_at_the_first_look():
    """The folder of this start was made wrong by mistake: the server found it out after 13 seconds."""
    changes, _ = played("h200x2-live-no-config")
    warned, failed = first(changes, "will-fail"), first(changes, "crashed")
    assert warned is not None and warned.verdict.rule == "will-fail-config" and warned.t < 1.0
    assert failed is not None and failed.t > 10.0


#: TP1 asleep before it enters graph capture: since when, until when. It sleeps in Python, the other waits in a barrier.
LATE = {"h200x2-live-late-capture": (32.5, 77.5), "vllm-live-h200-late-capture": (99.9, 144.9)}


@pytest.mark.parametrize("name", LATE)
def test_a_rank_that_is_late_into_a_collective(name):
    since, until = LATE[name]
    changes, last = played(name)
    assert [(c.t, c.verdict.headline) for c in changes if c.t < since and c.verdict.state in ALARMS] == []
    suspect, stalled = first(changes, "suspect"), first(changes, "stalled")
    assert suspect is not None and 15 < suspect.t - since < 30
    assert stalled is not None and stalled.t - since < 42 and stalled.verdict.odd_ranks == ("TP1",)
    assert "is missing from the collective" in stalled.verdict.headline
    after = [c for c in changes if c.t > until]
    assert after[0].t - until < 4 and not {c.verdict.state for c in after} & set(ALARMS), "it goes on without a word"
    assert last.ras is not None and last.ras.answer == "ok"
    assert max(len(one.ranks) for one in last.ras.communicators) == 2


def test_the_only_rank_sleeps_in_its_first_batch():
    """From 41.7 to 86.7 s. A sleep looks like a polling wait from outside: neither is claimed."""
    changes, last = played("h200-live-asleep-warmup")
    assert [(c.t, c.verdict.headline) for c in changes if c.t < 41.7 and c.verdict.state in ALARMS] == []
    suspect, stalled, ready = (first(changes, state) for state in ("suspect", "stalled", "ready"))
    assert suspect is not None and "sleeps on a timer" in suspect.verdict.headline and suspect.t < 64
    assert stalled is not None and stalled.verdict.headline.endswith("in _late.<locals>.called") and stalled.t < 79
    assert "silent for 30s but for requests" in stalled.verdict.evidence[2].text, "those are sgmon's own"
    assert ready is not None and ready.t > 86.7
    assert [(c.t, c.verdict.headline) for c in changes if c.t > 86.7 and c.verdict.state in ALARMS] == []
    assert last.verdict.state == "ended"


def test_a_library_that_is_missing_is_named():
    """A fault nobody had prepared: the package on the machine was not whole."""
    changes, last = played("h200-live-no-library")
    assert first(changes, "will-fail") is None and first(changes, "suspect") is None
    assert "libtvm_ffi_testing.so: cannot open shared object file" in last.verdict.headline
    assert last.verdict.state == "crashed"


#: a model that fits by 2 %, into a share and beside what another process holds; two replicas
FITS = {
    "h200-live-fits": 33.1,
    "h200-live-held-fits": 34.9,
    "vllm-live-h200-fits": 44.6,
    "vllm-live-h200-dp2": 57.7,
}


@pytest.mark.parametrize("name", FITS)
def test_what_fits_by_two_percent_is_never_said_to_fail(name):
    changes, last = played(name)
    assert [(c.t, c.verdict.headline) for c in changes if c.t < FITS[name] and c.verdict.state in ALARMS] == []
    assert last.verdict.state == "ended"
    close = [one for one in last.forecasts if one.rule == "gpu-memory" and one.level == "warning"]
    assert bool(close) is (name != "vllm-live-h200-dp2")


#: rule, and seconds in which it must be said; the server's own error came after 24 to 28 s
LOST = {
    "h200-live-too-large": ("gpu-memory", 1.0),
    "h200x2-live-held": ("gpu-balance", 1.0),
    "vllm-live-h200-too-large": ("gpu-memory", 3.0),
    "vllm-live-h200-held": ("gpu-share", 3.0),
    "vllm-live-h200-request-too-long": ("kv-cache", 1.0),
}


@pytest.mark.parametrize("name", LOST)
def test_memory_that_cannot_suffice_is_said_at_the_first_look(name):
    rule, within_s = LOST[name]
    changes, _ = played(name)
    warned, failed = first(changes, "will-fail"), first(changes, "crashed")
    assert warned is not None and warned.t < within_s and warned.verdict.rule == f"will-fail-{rule}"
    assert failed is not None and failed.t > 20
    assert [
        c for c in changes if c.t < failed.t and c.verdict.state in ALARMS and c.verdict.state != "will-fail"
    ] == []


def test_too_large_within_the_error_is_a_warning():
    """By 2 %, beside a held block: the CUDA context, which the files do not tell, decides."""
    changes, last = played("h200-live-held-too-large")
    assert first(changes, "will-fail") is None and changes[-1].verdict.state == "crashed"
    assert [one.level for one in last.forecasts if one.rule == "gpu-memory"] == ["warning"]


def test_a_holder_that_is_ending_is_no_reason_to_fail():
    """The scheduler of the start before still held 130 GiB for a second after it was killed, without a command line."""
    changes, _ = played("h200x2-live-holder-leaves")
    assert {c.verdict.state for c in changes} <= {"waiting", "progressing"}


def test_the_plan_stays_when_the_process_hides_its_files_at_its_end():
    _, last = played("h200x2-live-kill-warmup")
    assert last.memory_plans and last.memory_plans[0].weights_bytes is not None
