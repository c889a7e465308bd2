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


#: played side by side, three at a time: the standing ones take half a minute each
CASES = [
    Case("healthy", 2, 0, "ready", [], "ready", set()),
    Case("slow-disk", 2, 0, "ready", [], "ready", set(), speed=8.0),
    Case("compiling", 2, 0, "ready", [], "ready", set()),
    Case("stopped", 2, 3, "stopped", ["TP1"], "TP1", {"stopped", "suspect"}),
    Case("stuck-rank", None, 3, "stalled", ["TP5"], "TP5", {"suspect", "stalled"}),
    Case("vllm", 2, 0, "ready", [], "ready", set()),
    Case("vllm-stuck-rank", 3, 3, "stalled", ["TP2"], "TP2", {"suspect", "stalled"}),
    Case("nccl-hang", 4, 3, "stalled", ["TP3"], "TP3", {"suspect", "stalled"}),
    Case("crash", 4, 5, "crashed", ["TP2"], "TP2", {"crashed"}),
    Case("oom", 4, 5, "crashed", None, "memory", {"crashed"}),
    Case("killed", 2, 5, "crashed", ["TP1"], "TP1", {"crashed"}),
    Case("port-taken", 2, 5, "crashed", [], "port", {"crashed"}),
    Case("missing-peer", 4, 4, "waiting-by-design", None, "node 1", {"suspect"}),
    Case("gate", 2, 4, "waiting-by-design", None, "gate", {"suspect"}),
]


def play(case: Case) -> Played:
    with demo.start(case.scenario, tp=case.tp, speed=case.speed) as server:
        argv = ["wait", "--json", "--pid", str(server.pid), "--stall", "1s"]
        argv += ["--timeout", "60s" if case.code == 4 else "300s"]
        run = subprocess.run(
            [sys.executable, "-m", "tui_app.cli", *argv], capture_output=True, text=True, timeout=400, check=False
        )
    return run.returncode, json.loads(run.stdout) if run.stdout.strip() else {}, run.stderr


@pytest.fixture(scope="module")
def played() -> Iterator[dict[str, Future[Played]]]:
    """All of them, begun at once; a test awaits its own."""
    pool = ThreadPoolExecutor(3)
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
