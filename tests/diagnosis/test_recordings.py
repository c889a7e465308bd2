"""Real starts, replayed: what the verdict says over time. The table is in docs/verdicts.md.

All that it said, word for word, is kept in __snapshots__/test_recordings (``make goldens``).
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from syrupy.assertion import SnapshotAssertion

from sgmon.model import Snapshot
from tests.diagnosis import replay
from tests.diagnosis.replay import Change, first, states
from tests.diagnosis.verdict_rows import rows
from tests.golden import MEANT, Texts
from tests.recorded import RECORDINGS

#: SIGTERM came at the end of these, and nothing else
HEALTHY = (
    "cpu-tp1-tiny",
    "cpu-tp1-mid-pyspy",
    "cpu-serve-cli",
    "cpu-dummy",
    "cpu-dp2-tiny",
    "cpu-tp2-tiny",
    "cpu-tp2-debug",
    "cpu-tp2-mid-cold",
    "cpu-tp2-big-cold",
    "cpu-nnodes2-node0",
    "cpu-nnodes2-node1",
    "gpu-real-cold",
    "gpu-real-warm-mt-debug",
    "gpu-dummy32-nograph",
    "gpu-tiny",
    "gpu-tp2",
    "cpu-tp2-live-busy",
)
ALARMS = ("suspect", "stalled", "stopped", "crashed", "unknown")


#: words of an evidence -> the signals that they may have been read from
SPEAKS_OF = (
    (") reads ", {"bytes"}),
    (") downloads ", {"bytes"}),
    (" computes (", {"cpu"}),
    ("imports Python modules", {"cpu"}),
    (" compiles (", {"compiler"}),
    (" makes progress (bar ", {"bar"}),
    (" makes progress (log", {"log"}),
    (" makes progress (memory ", {"memory"}),
    ("): state ", {"proc"}),
)


@dataclass(frozen=True)
class Broken:
    """fault_t: when it was done to the server. within_s: from the fault to the state; headline: a part of it."""

    name: str
    state: str
    fault_t: float
    within_s: float
    odd: tuple[str, ...]
    headline: str


BROKEN = (
    Broken("cpu-tp2-sigstop-import", "stopped", 16.2, 1.5, ("TP1",), "TP1 is paused (SIGSTOP) while importing"),
    Broken("cpu-tp2-sigstop-load", "stopped", 62.7, 1.5, ("TP1",), "TP1 is paused (SIGSTOP) in the weight load"),
    Broken("gpu-tp2-stop1", "stopped", 31.2, 1.5, ("TP1",), "TP1 is paused (SIGSTOP) in the weight load"),
    Broken("gpu-tp2-stop-capture", "stopped", 146.9, 1.5, ("TP1",), "TP1 is paused (SIGSTOP) in the graph capture"),
    Broken("gpu-ready-native", "stopped", 42.2, 1.5, ("scheduler",), "the scheduler is paused"),
    Broken("cpu-tp2-kill9-import", "crashed", 25.8, 1.5, ("TP0",), "TP0 (pid 17441) was killed by SIGKILL"),
    Broken("cpu-tp2-kill9-load", "crashed", 64.9, 1.5, ("TP1",), "TP1 (pid 23782) was killed by SIGKILL"),
    Broken("gpu-kill-sched", "crashed", 30.5, 1.5, (), "was killed by SIGKILL"),
    Broken(
        "cpu-bad-shard",
        "crashed",
        49.5,
        1.5,
        ("TP1",),
        "TP1: weight file model-00003-of-00005.safetensors is missing (weight load)",
    ),
    Broken("cpu-wrong-path", "crashed", 9.0, 2.5, (), "the model was not found"),
    Broken("gpu-missing-model", "crashed", 12.0, 2.5, (), "the model was not found"),
    Broken("gpu-oom-big", "crashed", 23.0, 1.5, (), "out of GPU memory"),
    Broken("gpu-oom-frac", "crashed", 31.9, 1.5, (), "out of GPU memory"),
    Broken("cpu-port-in-use", "crashed", 31.4, 1.5, (), "the port is already in use"),
    Broken("cpu-port-in-use-long", "crashed", 69.5, 1.5, (), "the port is already in use"),
    Broken("gpu-port-used", "crashed", 60.0, 1.5, (), "the port is already in use"),
    Broken("cpu-nnodes2-hang", "waiting-by-design", 50.1, 15.0, ("node 1",), "node 1 of 2 has not joined"),
    Broken("gpu-hang-nnodes", "waiting-by-design", 26.0, 20.0, ("node 1",), "node 1 of 2 has not joined"),
)


#: these are lost from the beginning: another process holds the port, a shard is missing, the model is not here and the
#: hub is not asked, the folder has no config, node 0's own name cannot be resolved
LOST = {
    "cpu-port-in-use": "port",
    "cpu-port-in-use-long": "port",
    "gpu-port-used": "port",
    "vllm-cpu-port-in-use": "port",
    "vllm-live-port-held": "port",
    "vllm-live-shard-missing": "shard-missing",
    "vllm-live-no-model": "model-offline",
    "h200x2-live-no-config": "config",
    "cpu-live-unresolved-node0": "unresolved",
    "h200x2-live-held": "gpu-balance",
    "h200-live-too-large": "gpu-memory",
    "vllm-live-h200-held": "gpu-share",
    "vllm-live-h200-too-large": "gpu-memory",
    "vllm-live-h200-request-too-long": "kv-cache",
}
NAMES = sorted(path.name.removesuffix(".jsonl.gz") for path in RECORDINGS.glob("*.jsonl.gz"))


pytestmark = pytest.mark.usefixtures("utc")


def played(name: str) -> tuple[list[Change], Snapshot]:
    found = replay.played(name)
    return found.changes, found.last


@pytest.mark.parametrize("name", NAMES)
def test_every_word_is_as_it_was(name: str, snapshot: SnapshotAssertion) -> None:
    found = replay.played(name)
    assert "\n".join([*rows(found.said, found.last), ""]) == snapshot(extension_class=Texts), MEANT


@pytest.mark.parametrize("name", NAMES)
def test_will_fail_is_said_of_lost_starts_alone(name: str) -> None:
    """No start that has got ready, or could have, is ever said to fail; those that are lost from the beginning are."""
    changes, _ = played(name)
    said = first(changes, "will-fail")
    assert (said is not None) == (name in LOST), states(changes)
    if said is not None:
        assert said.verdict.rule == f"will-fail-{LOST[name]}"
        assert states(changes)[-1] == "crashed"


@pytest.mark.parametrize("name", HEALTHY)
def test_no_alarm_in_a_healthy_start(name: str) -> None:
    changes, _ = played(name)
    assert [(c.t, c.verdict.headline) for c in changes if c.verdict.state in ALARMS] == []
    assert "ready" in states(changes)


@pytest.mark.parametrize("name", HEALTHY)
def test_ready_only_once_and_not_before_health(name: str) -> None:
    changes, _ = played(name)
    assert states(changes).count("ready") == 1
    ready = first(changes, "ready")
    assert ready is not None
    assert any(e.signal == "port" and "200" in e.text for e in ready.verdict.evidence)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_fault_is_named_in_time(case: Broken) -> None:
    changes, _ = played(case.name)
    found = first(changes, case.state, after=case.fault_t - 1.0)
    assert found is not None, states(changes)
    assert found.t - case.fault_t <= case.within_s
    settled = [c for c in changes if c.verdict.state == case.state and c.t <= found.t + 2.0]
    assert any(case.headline in c.verdict.headline for c in settled), [c.verdict.headline for c in settled]
    assert any(c.verdict.odd_ranks == case.odd for c in settled), [c.verdict.odd_ranks for c in settled]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_no_alarm_before_the_fault(case: Broken) -> None:
    changes, _ = played(case.name)
    assert [c.verdict.headline for c in changes if c.verdict.state in ALARMS and c.t < case.fault_t - 0.5] == []


@pytest.mark.parametrize(
    "name", ["cpu-tp2-sigstop-load", "cpu-tp2-sigstop-import", "gpu-tp2-stop1", "gpu-tp2-stop-capture"]
)
def test_a_start_that_goes_on_ends_ready(name: str) -> None:
    changes, _ = played(name)
    assert states(changes)[:4] == ["progressing", "stopped", "progressing", "ready"]


def test_port_in_use_is_warned_of_before_the_load() -> None:
    changes, _ = played("cpu-port-in-use-long")
    said = first(changes, "will-fail")
    assert said is not None and said.t < 3
    assert "held by pid" in said.verdict.headline and said.verdict.headline.endswith("while the HTTP server starts")
    assert said.verdict.next[0].command.startswith("ps ")
    assert states(changes)[-1] == "crashed"


@pytest.mark.parametrize("name", NAMES)
def test_headlines_and_evidence_are_short_and_named(name: str) -> None:
    changes, _ = played(name)
    for change in changes:
        verdict = change.verdict
        assert verdict.headline and len(verdict.headline) <= 200
        assert len(verdict.evidence) <= 5
        assert all(e.signal and e.text.strip() == e.text for e in verdict.evidence)
        assert all(e.signal in signals for e in verdict.evidence for words, signals in SPEAKS_OF if words in e.text)
        assert 0 <= verdict.confidence <= 1


def test_real_nccl_hang_on_two_gpus() -> None:
    """TP1 late from 12.4 s, both at work at 48-57 s, TP1 stopped, behind after it went on, then crossed collectives."""
    changes, _ = played("gpu-nccl-hang")
    suspect, stalled = first(changes, "suspect"), first(changes, "stalled")
    assert suspect is not None and suspect.t - 12.4 <= 17
    assert stalled is not None and stalled.t - 12.4 <= 32
    assert stalled.verdict.odd_ranks == ("TP1",)
    assert [c.verdict.state for c in changes if 44 < c.t < 112] == ["progressing", "stopped"]
    assert changes[-1].verdict.headline.startswith("all 2 ranks spin in a collective")
    assert states(changes)[1:] == [
        "suspect",
        "stalled",
        "progressing",
        "stopped",
        "stalled",
        "progressing",
        "stalled",
    ]


@pytest.mark.parametrize(
    ("name", "fault_t", "odd", "headline"),
    [
        (
            "cpu-tp1-stuck-init",
            45.0,
            (),
            "the scheduler makes no progress in the scheduler start, in Scheduler.__init__",
        ),
        ("cpu-tp2-live-hang-load", 25.4, ("TP1",), "(stuck in take_lock_twice) in the weight load"),
        ("cpu-tp2-live-hang-warmup", 29.0, ("TP1",), "(stuck in take_lock_twice) in the warm-up"),
        ("demo-stuck-rank", 27.0, ("TP5",), "TP5 is missing from the collective (stuck in compile_kernel)"),
        ("demo-warmup-stuck", 34.0, ("TP1",), "TP1 is missing from the collective in the warm-up"),
    ],
)
def test_quiet_hang_recorded_live(name: str, fault_t: float, odd: tuple[str, ...], headline: str) -> None:
    """Recorded by sgmon itself, with the stacks that it took at its first suspicion."""
    changes, snapshot = played(name)
    suspect, stalled = first(changes, "suspect"), first(changes, "stalled")
    assert suspect is not None and 14 <= suspect.t - fault_t <= 20
    assert stalled is not None and 29 <= stalled.t - fault_t <= 34
    assert snapshot.verdict.state == "stalled"
    assert snapshot.verdict.odd_ranks == odd
    assert headline in snapshot.verdict.headline
    assert any(e.signal == "stack" for e in snapshot.verdict.evidence)


def test_three_faults_of_one_real_start() -> None:
    """Recorded live: TP1 stopped at import (17.1 s) and in the warm-up (54.0 s), killed when ready (65.6 s)."""
    changes, _ = played("cpu-tp2-live-three-faults")
    assert states(changes) == ["progressing", "stopped", "progressing", "stopped", "progressing", "ready", "crashed"]
    assert {c.verdict.odd_ranks for c in changes if c.verdict.state in ("stopped", "crashed")} == {("TP1",)}
    assert changes[-1].verdict.headline.startswith("TP1 (pid 5434) was killed by SIGKILL after it was ready")


@pytest.mark.parametrize("name", ["demo-slow-disk", "demo-compiling"])
def test_slow_and_compiling_recorded_live(name: str) -> None:
    changes, _ = played(name)
    assert not {"suspect", "stalled", "stopped", "crashed"} & set(states(changes))
