"""Real vLLM starts, replayed: 0.32 on a busy machine of two cores, 0.22 on two H200s. What the verdict says over time.

Made by ``tests/vllm/convert.py``. No word on the end of a healthy one, which is asked to end by SIGTERM.
"""

from __future__ import annotations

from functools import cache

import pytest

from sgmon.model import Role, Snapshot
from tests.diagnosis.replay import Change, first, replay

ALARMS = ("suspect", "stalled", "stopped", "crashed", "unknown", "unhealthy", "will-fail")

#: name -> seconds of SIGTERM, of the first 200; the latter None: not ready in time
HEALTHY = {
    "vllm-cpu-tp1-tiny": (400.7, 388.2),
    "vllm-cpu-tp2-tiny": (389.7, 379.0),
    "vllm-cpu-dp2-tiny": (592.0, 583.2),
    "vllm-cpu-tp1-compile": (601.0, None),
    "vllm-h200-tp1-default": (82.1, 77.5),
    "vllm-h200-tp2-default": (142.2, 136.1),
    "vllm-h200-tp2-eager": (68.8, 63.4),
    "vllm-h200-dp2-eager": (48.9, 44.5),
}


@cache
def played(name: str, until: float) -> tuple[list[Change], Snapshot]:
    return replay(name, until=until)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_start_without_one_false_word(name):
    sigterm, ready_t = HEALTHY[name]
    changes, last = played(name, sigterm - 0.5)
    assert [(c.t, c.verdict.headline) for c in changes if c.verdict.state in ALARMS] == []
    ready = first(changes, "ready")
    if ready_t is None:
        assert ready is None
    else:
        assert ready is not None and 0 <= ready.t - ready_t <= 2.0
        assert last.verdict.state == "ready" and last.phase == "serving"
    if last.gpu.gpus:
        assert {gpu.index: gpu.ranks for gpu in last.gpu.gpus if gpu.ranks} == RANKS_OF_GPUS[name]


RANKS_OF_GPUS = {
    "vllm-h200-tp1-default": {0: ("",)},
    "vllm-h200-tp2-default": {0: ("TP0",), 1: ("TP1",)},
    "vllm-h200-tp2-eager": {0: ("TP0",), 1: ("TP1",)},
    "vllm-h200-dp2-eager": {0: ("DP0",), 1: ("DP1",)},
}


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("vllm-cpu-tp1-tiny", [("", Role.WORKER)]),
        ("vllm-cpu-tp2-tiny", [("TP0", Role.WORKER), ("TP1", Role.WORKER)]),
        ("vllm-h200-tp1-default", [("", Role.WORKER)]),
        ("vllm-h200-dp2-eager", [("DP0", Role.WORKER), ("DP1", Role.WORKER)]),
    ],
)
def test_the_ranks(name, ranks):
    _, last = played(name, HEALTHY[name][0] - 0.5)
    assert sorted((rank.name, rank.role) for rank in last.ranks) == ranks


def test_phases_of_a_cold_start_on_gpus():
    """Dynamo and inductor are silent for long with the CPU busy; 16 s without a line follow the capture."""
    changes, _ = played("vllm-h200-tp2-default", 141.0)
    phases = list(dict.fromkeys(c.verdict.phase for c in changes))
    wanted = [
        "launch",
        "spawn",
        "dist_init",
        "weights",
        "compile",
        "profile",
        "graphs",
        "engine_end",
        "http",
        "serving",
    ]
    assert [phase for phase in phases if phase in wanted and phase != "ready"] == sorted(
        wanted, key=phases.index
    ) and set(wanted) <= set(phases)
    warm_up = [c for c in changes if 117.5 < c.t < 133]
    assert all(c.verdict.state == "progressing" for c in warm_up)


@pytest.mark.parametrize(
    ("name", "stop_t", "cont_t", "phase"),
    [("vllm-cpu-tp2-sigstop-load", 66.4, 166.4, "weights"), ("vllm-h200-tp2-stop-load", 37.8, 57.9, "weights")],
)
def test_a_stopped_worker(name, stop_t, cont_t, phase):
    """TP0 has loaded and looks exactly like an idle worker; the engine core waits without a word."""
    changes, _ = played(name, cont_t + 15)
    stopped = first(changes, "stopped")
    assert stopped is not None and 0 <= stopped.t - stop_t <= 1.5
    assert (stopped.verdict.odd_ranks, stopped.verdict.phase) == (("TP1",), phase)
    assert stopped.verdict.headline.startswith("TP1 is paused (SIGSTOP) in the weight load")
    assert [c.verdict.state for c in changes if stop_t + 2 < c.t < cont_t] == []
    after = [c for c in changes if c.t > cont_t]
    assert after and after[0].t - cont_t <= 4.5
    assert all(c.verdict.state in ("progressing", "slow", "ready") for c in after)


@pytest.mark.parametrize(
    ("name", "killed_t", "where"),
    [
        ("vllm-cpu-tp2-kill9-load", 546.0, "in the weight load"),
        ("vllm-cpu-tp2-kill9-ready", 538.4, "after it was ready"),
    ],
)
def test_a_killed_worker(name, killed_t, where):
    """No line names it: the bar of TP0 runs on, the engine core says that it failed, and the root ends with 0."""
    changes, last = played(name, 1e9)
    crashed = first(changes, "crashed")
    assert crashed is not None and 0 <= crashed.t - killed_t <= 2.0  # of several deaths, a look later
    assert crashed.verdict.odd_ranks == ("TP1",) and where in crashed.verdict.headline
    assert last.verdict.state == "crashed" and last.verdict.odd_ranks == ("TP1",)
    assert not [c for c in changes if c.verdict.state in ALARMS and c.t < killed_t]


def test_a_node_that_never_comes():
    changes, last = played("vllm-cpu-nnodes2-hang", 260.0)
    waiting = first(changes, "waiting-by-design")
    assert waiting is not None and waiting.t - 54.1 <= 12
    assert waiting.verdict.odd_ranks == ("node 1",)
    assert waiting.verdict.headline == "node 1 of 2 has not joined at 127.0.0.1:20777"
    assert [c.verdict.headline for c in changes if c.verdict.state in ALARMS] == []
    assert [(rank.name, rank.process.rank_inferred) for rank in last.ranks] == [("TP0", True)]


def test_a_node_that_never_comes_leaves_orphans():
    _, last = played("vllm-cpu-nnodes2-hang", 1e9)
    assert last.verdict.state == "crashed"
    assert any("left behind" in fact.text and "TP0 (pid 21299)" in fact.text for fact in last.verdict.evidence)


def test_a_port_that_is_held():
    """Bound first: the start dies after its imports, before any child."""
    changes, _ = played("vllm-cpu-port-in-use", 150.0)
    assert changes[1].verdict.rule == "will-fail-port" and changes[1].t < 2
    crashed = first(changes, "crashed")
    assert crashed is not None and 139 <= crashed.t <= 141 and "port is already in use" in crashed.verdict.headline


def test_a_wrong_path():
    changes, _ = played("vllm-cpu-wrong-path", 70.0)
    crashed = first(changes, "crashed")
    assert crashed is not None and crashed.t <= 65
    assert [c for c in changes if c.verdict.state in ALARMS and c.t < crashed.t] == []
