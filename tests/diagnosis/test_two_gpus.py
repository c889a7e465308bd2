"""Real SGLang 0.5.17 starts on one and two H200s, recorded live by ``sgmon record``: the verdict over time.

TP2 over NCCL; rank 1 stopped (SIGSTOP) in the load, in graph capture and in the warm-up, killed in the load, and
held asleep before a captured shape's collective ("never enters"). The seconds of faults are those of the
scripts that did it, on the recording's own clock.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.diagnosis.replay import first, replay, states


@dataclass(frozen=True)
class Fault:
    name: str
    state: str
    fault_t: float
    within_s: float
    odd: tuple[str, ...]
    headline: str
    after: tuple[str, ...]  # states that may come before and after


FAULTS = (
    Fault("h200x2-stop-load", "stopped", 30.4, 1.6, ("TP1",), "paused (SIGSTOP) in the weight load", ("ready",)),
    Fault("h200x2-stop-capture", "stopped", 49.0, 1.6, ("TP1",), "paused (SIGSTOP) in the graph", ("slow", "ready")),
    Fault("h200x2-stop-warmup", "stopped", 51.6, 1.6, ("TP1",), "paused (SIGSTOP) in the warm-up", ("ready",)),
    Fault("h200x2-kill-load", "crashed", 36.8, 1.6, ("TP1",), "was killed by SIGKILL in the weight load", ()),
    Fault("h200-stop-one", "stopped", 33.2, 1.6, ("scheduler",), "the scheduler is paused (SIGSTOP)", ()),
    Fault("h200-oom", "crashed", 37.5, 2.5, (), "out of GPU memory", ()),
    Fault("h200x2-never-enters", "suspect", 50.2, 17.5, ("TP1",), "TP1 is missing from the collective", ("stalled",)),
    Fault("h200x2-never-enters", "stalled", 50.2, 32.0, ("TP1",), "TP1 is missing from the collective", ("suspect",)),
    Fault("h200x2-nccl-spin", "suspect", 109.7, 18.5, ("TP1",), "TP1 is missing from the collective", ("stalled",)),
    Fault("h200x2-nccl-spin", "stalled", 109.7, 33.5, ("TP1",), "TP1 is missing from the collective", ("suspect",)),
)
CALM = {"waiting", "progressing"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.name}-{fault.state}")
def test_the_rank_is_named_and_soon(fault: Fault) -> None:
    changes, _ = replay(fault.name)
    change = next((c for c in changes if c.verdict.state == fault.state and c.verdict.odd_ranks == fault.odd), None)
    assert change is not None, [(c.t, c.verdict.state, c.verdict.headline) for c in changes]
    assert -0.5 <= change.t - fault.fault_t <= fault.within_s, change
    assert fault.headline in change.verdict.headline
    assert set(states(changes)) <= CALM | {fault.state, *fault.after}, states(changes)


@pytest.mark.parametrize("name", ["h200x2-cold", "h200x2-warm", "h200x2-dummy"])
def test_a_healthy_start_says_no_false_word(name: str) -> None:
    """One of them compiles for 84 s in its first captured shape, with one rank asleep and both GPUs idle."""
    changes, last = replay(name)
    assert states(changes)[-1] == "ready"
    assert set(states(changes)) <= CALM | {"ready"}, states(changes)
    assert [(gpu.index, gpu.ranks, gpu.ranks_inferred) for gpu in last.gpu.gpus] == [
        (0, ("TP0",), False),
        (1, ("TP1",), False),
    ]


def test_the_rank_that_spins_in_nccl_is_told_from_the_one_that_is_not_there() -> None:
    """TP0's card is pinned at 100 % with flat power, TP1's is idle; /proc, the stacks and NCCL's RAS say the same."""
    changes, last = replay("h200x2-nccl-spin")
    suspect, stalled = first(changes, "suspect"), first(changes, "stalled")
    assert suspect is not None
    assert stalled is not None
    said = {(fact.signal, fact.rank): fact.text for fact in suspect.verdict.evidence}
    assert "pinned at 100 % with flat power" in said["gpu", "TP0"]
    assert {fact.signal for fact in stalled.verdict.evidence} >= {"proc", "gpu", "stack"}
    gpus = {gpu.index: gpu for gpu in last.gpu.gpus}
    assert (gpus[0].util_percent, gpus[1].util_percent) == (100, 0)
    assert last.ras is not None
    assert [(one.status, one.behind) for one in last.ras.communicators] == [("MISMATCH", (1,))]
    assert last.ras.unequal_unchanged is True
