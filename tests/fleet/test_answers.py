"""The answers for orchestrators at every moment of recorded starts: a slow start is never killed, a hung one is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.export.fleet.answers import HOLD_S, STUCK_S, answer
from sgmon.model import Snapshot, Verdict
from tests.fleet.moments import worst
from tests.recorded import moments

HEALTHY = [
    "cpu-tp2-big-cold",
    "cpu-tp2-tiny",
    "h200x2-cold",
    "h200x2-warm",
    "vllm-h200-tp2-default",
    "cpu-tp2-mid-cold",
]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_start_passes_livez_always_and_readyz_when_it_serves(name: str) -> None:
    begun = ready = False
    for moment in moments(name):
        if moment.verdict.state == "ended":
            break  # it was asked to end
        assert answer("livez", moment, hold_s=0.0).ok, moment.verdict.headline
        started = answer("startupz", moment).ok
        assert started or not begun, "a start that is under way stays so"
        begun = begun or started
        assert answer("readyz", moment).ok == (moment.verdict.state == "ready")
        ready = ready or moment.verdict.state == "ready"
    assert begun and ready


@pytest.mark.parametrize(
    ("name", "state", "culprit"),
    [
        ("cpu-tp2-live-hang-load", "stalled", ("TP1",)),
        ("cpu-tp2-sigstop-load", "stopped", ("TP1",)),
        ("h200x2-never-enters", "stalled", ("TP1",)),
    ],
)
def test_a_hung_start_fails_when_it_has_held(name: str, state: str, culprit: tuple[str, ...]) -> None:
    hung = worst(name, state)
    since_t = hung.verdict.since_t
    young = answer("livez", replace(hung, t=since_t + HOLD_S - 1.0))
    old = answer("livez", replace(hung, t=since_t + HOLD_S + 0.1))
    assert young.ok and not old.ok
    assert old.culprit == culprit and old.state == state and f"{HOLD_S:.0f} s" in old.why
    assert not answer("startupz", replace(hung, t=since_t + HOLD_S + 0.1)).ok
    assert not answer("readyz", hung).ok


@pytest.mark.parametrize("name", ["cpu-tp2-kill9-load", "gpu-oom-big", "vllm-live-h200-kill-capture"])
def test_a_crash_fails_at_once(name: str) -> None:
    crashed = answer("livez", worst(name, "crashed"))
    assert not crashed.ok and crashed.why == "crashed" and crashed.detail and crashed.elapsed_s is not None


@pytest.mark.parametrize("state", ["slow", "will-fail", "waiting-by-design", "suspect", "unknown", "unhealthy"])
def test_no_other_state_restarts_a_server(state: str) -> None:
    seen = replace(
        worst("cpu-tp2-live-hang-load", "stalled"), t=10_000.0, verdict=Verdict(state, "words", since_t=1.0)
    )
    assert answer("livez", seen).ok and answer("startupz", seen).ok and not answer("readyz", seen).ok


def test_without_a_server_nothing_is_restarted_and_nothing_has_begun() -> None:
    empty = Snapshot(t=100.0, looked_for="no server here")
    assert answer("livez", empty).ok
    begun = answer("startupz", empty)
    assert not begun.ok and "no server" in begun.why and begun.elapsed_s is None and begun.moved_s is None


def test_a_stuck_sgmon_restarts_no_server_and_sends_it_no_requests() -> None:
    crashed = worst("cpu-tp2-kill9-load", "crashed")
    late = STUCK_S + 1.0
    assert answer("livez", crashed, age_s=late).ok
    ready = worst("cpu-tp2-big-cold", "ready")
    said = answer("readyz", ready, age_s=late)
    assert answer("readyz", ready).ok and not said.ok and "sgmon" in said.why


def test_the_body_says_how_long_and_since_when() -> None:
    said = answer("readyz", worst("h200x2-cold", "progressing"))
    assert said.phase and said.detail and said.elapsed_s is not None and said.elapsed_s > 0
    assert said.moved_s is not None and said.pid
    assert answer("readyz", worst("h200x2-cold", "ready")).ready_after_s is not None
