"""Watches of a real vLLM 0.32 on a CPU, taken live by ``make test-real``, replayed: the words then are the words now."""

from __future__ import annotations

import pytest

from tests.diagnosis.replay import Change, first, replay


def before(changes: list[Change], t: float) -> set[str]:
    return {change.verdict.state for change in changes if change.t < t}


def test_tp1_is_stopped_and_killed_in_the_load():
    """Stopped at 49.7 s, killed at 55.5 s."""
    changes, last = replay("vllm-live-tp2-stop-kill-load")
    stopped, crashed = first(changes, "stopped"), first(changes, "crashed")
    assert stopped is not None and 0 <= stopped.t - 49.7 <= 1.5
    assert (stopped.verdict.odd_ranks, stopped.verdict.phase) == (("TP1",), "weights")
    assert before(changes, stopped.t) == {"waiting", "progressing"}
    assert crashed is not None and 0 <= crashed.t - 55.5 <= 1.5
    assert {change.verdict.odd_ranks for change in changes if change.t >= crashed.t} == {(), ("TP1",)}
    assert (last.verdict.rule, last.verdict.odd_ranks) == ("process-gone", ("TP1",))


def test_a_node_never_comes_and_the_launcher_is_killed():
    """It waits from 27.7 s on; the launcher is killed at 46.3 s. Its engine core and its worker live on."""
    changes, last = replay("vllm-live-nnodes2-launcher-killed")
    waits, crashed = first(changes, "waiting-by-design"), first(changes, "crashed")
    assert waits is not None and 0 <= waits.t - 27.7 <= 10
    assert (waits.verdict.rule, waits.verdict.odd_ranks) == ("node-missing", ("node 1",))
    assert before(changes, waits.t) == {"waiting", "progressing"}
    assert crashed is not None and 0 <= crashed.t - 46.3 <= 1.5
    left = next(fact.text for fact in last.verdict.evidence if "left behind" in fact.text)
    assert "TP0 (pid 18459)" in left and "engine core (pid 18336)" in left


def test_tp1_is_killed_while_it_imports():
    """At 17.7 s. TP0 goes on to the rendezvous after it: the headline keeps the phase of the dead rank."""
    changes, last = replay("vllm-live-tp2-kill-import")
    crashed = first(changes, "crashed")
    assert crashed is not None and 0 <= crashed.t - 17.7 <= 1.5
    assert before(changes, crashed.t) == {"waiting", "progressing"}
    assert {change.verdict.odd_ranks for change in changes if change.t >= crashed.t} == {(), ("TP1",)}
    assert (last.verdict.rule, last.verdict.odd_ranks) == ("process-gone", ("TP1",))
    assert last.phase == "dist_init" and last.verdict.headline.endswith(" while importing")


def test_an_engine_core_that_imports_is_not_called_a_worker():
    changes, _ = replay("vllm-live-nnodes2-launcher-killed", until=25.0)
    importing = next(change for change in changes if change.verdict.phase == "spawn")
    assert "engine core" in importing.verdict.headline


def test_tp1_is_stopped_at_import_and_when_ready_and_killed():
    """Stopped at 28.9 and 70.5 s for 5 s each, killed at 76.0 s; ready at 70.2 s, on busy cores."""
    changes, last = replay("vllm-live-tp2-stop-stop-kill-ready")
    stops = [change for change in changes if change.verdict.state == "stopped"]
    assert [
        (0 <= change.t - t <= 1.5, change.verdict.odd_ranks) for change, t in zip(stops, (28.9, 70.4), strict=True)
    ] == [
        (True, ("TP1",)),
        (True, ("TP1",)),
    ]
    assert before(changes, 75.9) == {"waiting", "progressing", "slow", "stopped", "ready"}
    assert [change.verdict.phase for change in stops] == ["spawn", "serving"]
    crashed = first(changes, "crashed")
    assert crashed is not None and 0 <= crashed.t - 76.0 <= 1.5
    assert {change.verdict.odd_ranks for change in changes if change.t >= crashed.t} == {("TP1",)}
    assert (last.verdict.state, last.verdict.odd_ranks) == ("crashed", ("TP1",))


@pytest.mark.parametrize(
    ("name", "rule", "cause", "ranks", "crashed_t"),
    [
        ("port-held", "port", "port_in_use", (), 7.8),
        ("no-model", "model-offline", "hub_unreachable", (), 7.3),
        ("shard-missing", "shard-missing", "weights_missing", ("TP1",), 22.5),
    ],
)
def test_a_lost_start_is_said_to_fail_long_before_it_does(name, rule, cause, ranks, crashed_t):
    changes, last = replay(f"vllm-live-{name}")
    said, crashed = first(changes, "will-fail"), first(changes, "crashed")
    assert said is not None and said.t <= 1.0 and said.verdict.rule == f"will-fail-{rule}"
    assert crashed is not None and abs(crashed.t - crashed_t) <= 1.5
    assert before(changes, crashed.t) <= {"waiting", "progressing", "will-fail"}
    assert last.log.error is not None and last.log.error.kind == cause
    assert (last.verdict.state, last.verdict.odd_ranks) == ("crashed", ranks)


def test_a_dp_peer_never_comes():
    """The first "Waiting for READY message" comes at 41.8 s."""
    changes, last = replay("vllm-live-dp-peer-missing")
    waits = first(changes, "waiting-by-design")
    assert waits is not None and 0 <= waits.t - 41.8 <= 3.0
    assert (last.verdict.rule, last.verdict.odd_ranks) == ("engine-missing", ("DP1",))
    assert before(changes, 1e9) == {"waiting", "progressing", "waiting-by-design"}


def test_the_engine_core_of_a_ready_server_is_killed():
    """At 35.3 s, just ready. Its worker ends with it."""
    changes, last = replay("vllm-live-tp1-kill-engine")
    ready, crashed = first(changes, "ready"), first(changes, "crashed")
    assert ready is not None and crashed is not None and 0 <= crashed.t - 35.3 <= 1.5
    assert before(changes, crashed.t) == {"waiting", "progressing", "ready"}
    assert last.verdict.rule == "process-gone"
    assert "engine core (pid 28367)" in last.verdict.headline


@pytest.mark.parametrize(
    ("name", "ranks", "ready_t"),
    [("dp2", ["DP0", "DP1"], 76.1), ("pp2", ["PP0", "PP1"], 31.1)],
)
def test_a_healthy_start_without_one_false_word(name, ranks, ready_t):
    changes, last = replay(f"vllm-live-{name}", until=ready_t + 0.5)
    assert before(changes, 1e9) <= {"waiting", "progressing", "slow", "ready"}
    ready = first(changes, "ready")
    assert ready is not None and abs(ready.t - ready_t) <= 1.0
    assert sorted(rank.name for rank in last.ranks) == ranks
