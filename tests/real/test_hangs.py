"""A real server with a deadlock in TP1: nothing dies and nothing is logged. Suspect, then stalled, and TP1 named."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.real import measured
from tests.real.server import HERE, real_server
from tests.real.watching import ALARMS, watching

RUNNER = "sglang.srt.model_executor.model_runner:ModelRunner"


@pytest.mark.parametrize(
    ("function", "situation", "line", "phases"),
    [
        (
            "sglang.srt.distributed.bootstrap:init_parallel_runtime",
            "TP1 hangs before the rendezvous",
            "TP0] Init parallel begin",
            {"dist_init"},
        ),
        (f"{RUNNER}.load_model", "TP1 hangs in the load", "TP0] Load weight end", {"weights"}),
        (f"{RUNNER}.forward", "TP1 hangs in the warm-up", "Uvicorn running", {"http", "warmup"}),
    ],
    ids=["rendezvous", "load", "warmup"],
)
def test_tp1_hangs(tmp_path: Path, function: str, situation: str, line: str, phases: set[str]) -> None:
    env = {"PYTHONPATH": str(HERE / "hang"), "SGMON_TEST_HANG": function}
    with (
        real_server(tmp_path, "tiny", "--tp", "2", env=env) as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        hung_at = server.wait_for_line(line)
        assert not ALARMS & set(watcher.states()), watcher.history()
        stalled = watcher.wait_for("stalled", after=hung_at, timeout_s=90)
        measured.fault(situation, watcher, hung_at, stalled)
        suspect = watcher.first("suspect", after=hung_at)
        assert suspect is not None and stalled.at > suspect.at
        assert stalled.at - hung_at <= 60, watcher.history()
        time.sleep(5.0)
        last = watcher.snapshot.verdict
        assert (last.state, last.odd_ranks) == ("stalled", ("TP1",)), watcher.history()
        assert last.phase in phases
        assert any(fact.signal == "stack" for fact in last.evidence)
