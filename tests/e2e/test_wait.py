"""``sgmon wait`` over simulated servers: state, culprit and exit code of each, with no false alarm on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from sgmon import demo

#: exit code, the JSON object, what was printed to stderr
Played = tuple[int, dict[str, Any], str]
ALARMS = {"suspect", "stalled", "stopped", "crashed"}


class Case(NamedTuple):
    scenario: str
    tp: int | None
    code: int
    state: str
    odd: list[str] | None
    words: str
    allowed: set[str]
    speed: float = 3.0


#: played side by side, four at a time; those that take longest come first: silence is a stall after half a minute
CASES = [
    Case("vllm-stuck-rank", 3, 3, "stalled", ["TP2"], "TP2", {"suspect", "stalled"}),
    Case("stuck-rank", None, 3, "stalled", ["TP5"], "TP5", {"suspect", "stalled"}),
    Case("nccl-hang", 4, 3, "stalled", ["TP3"], "TP3", {"suspect", "stalled"}),
    Case("slow-disk", 2, 0, "ready", [], "ready", set(), speed=24.0),
    Case("missing-peer", 4, 4, "waiting-by-design", None, "node 1", {"suspect"}),
    Case("gate", 2, 4, "waiting-by-design", None, "gate", {"suspect"}),
    Case("healthy", 2, 0, "ready", [], "ready", set()),
    Case("compiling", 2, 0, "ready", [], "ready", set()),
    Case("vllm", 2, 0, "ready", [], "ready", set()),
    Case("port-taken", 2, 5, "crashed", [], "port", {"crashed"}),
    Case("stopped", 2, 3, "stopped", ["TP1"], "TP1", {"stopped", "suspect"}),
    Case("oom", 4, 5, "crashed", None, "memory", {"crashed"}),
    Case("crash", 4, 5, "crashed", ["TP2"], "TP2", {"crashed"}),
    Case("killed", 2, 5, "crashed", ["TP1"], "TP1", {"crashed"}),
]
SIDE_BY_SIDE = 4
#: what waits by design is looked at until this time is over; on a loaded machine, which is not there yet, once more
TIMEOUTS = ("20s", "60s")


#: a server that crashes may be gone before a loaded machine has started sgmon: it is played again, slower
SLOWER = (1.0, 6.0)


def play(case: Case) -> Played:
    """What ``sgmon wait`` says of the case, with the verdicts of every look."""
    for slower in SLOWER:
        code, said, err = play_at(case, case.speed / slower)
        if said.get("server"):
            break
    return code, said, err


def play_at(case: Case, speed: float) -> Played:
    verdicts: list[dict[str, Any]] = []
    with demo.start(case.scenario, tp=case.tp, speed=speed) as server:
        for timeout in TIMEOUTS if case.code == 4 else ("300s",):
            argv = ["wait", "--json", "--pid", str(server.pid), "--stall", "1s", "--timeout", timeout]
            run = subprocess.run(
                [sys.executable, "-m", "tui_app.cli", *argv], capture_output=True, text=True, timeout=400, check=False
            )
            said = json.loads(run.stdout) if run.stdout.strip() else {}
            verdicts += said.get("verdicts", [])
            if said.get("state") == case.state:
                break
    return run.returncode, {**said, "verdicts": verdicts} if said else {}, run.stderr


@pytest.fixture(scope="module")
def played() -> Iterator[dict[str, Future[Played]]]:
    """All of them, begun at once; a test awaits its own."""
    pool = ThreadPoolExecutor(SIDE_BY_SIDE)
    yield {case.scenario: pool.submit(play, case) for case in CASES}
    pool.shutdown(cancel_futures=True)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.scenario)
def test_what_wait_says(case: Case, played: dict[str, Future[Played]]) -> None:
    code, said, err = played[case.scenario].result()
    story = [(change["t"], change["state"], change["headline"]) for change in said.get("verdicts", [])]
    assert said, err
    assert (code, said["state"]) == (case.code, case.state), (said["headline"], story)
    if case.odd is not None:
        assert said["odd_ranks"] == case.odd, (said["headline"], story)
    text = said["headline"] + " ".join(fact["text"] for fact in said["evidence"])
    assert case.words.lower() in text.lower(), text
    false = {state for _, state, _ in story} & ALARMS - case.allowed
    assert not false, story
