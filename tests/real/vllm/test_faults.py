"""Real vLLM servers with a fault: the state, who is named, and how long it takes from the fault to the verdict."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.real import measured
from tests.real.server import drop_page_cache, until
from tests.real.vllm.server import ENGINE, HOME, START_S, VllmServer, vllm_server
from tests.real.watching import ALARMS, Said, Watcher, watching

#: a stopped or killed process is certain the moment it is read; a reading comes each second, later on a busy machine
AT_ONCE_S = 4.0
#: a death of which the log tells the order is awaited for 2.5 s
NAMED_S = 8.0


def _hurt(pid: int, number: signal.Signals) -> float:
    os.kill(pid, number)
    return time.time()


def _stopped(where: str, watcher: Watcher, victim: int) -> Said:
    """TP1 is stopped, is called so at once and as long as it is."""
    assert not ALARMS & set(watcher.states()[-1:]), watcher.history()
    fault_at = _hurt(victim, signal.SIGSTOP)
    said = watcher.wait_for("stopped", after=fault_at, timeout_s=30, odd="TP1")
    measured.fault(f"vLLM TP1 stopped: {where}", watcher, fault_at, said)
    assert said.verdict.odd_ranks == ("TP1",)
    assert said.at - fault_at <= AT_ONCE_S, watcher.history()
    time.sleep(5.0)
    assert watcher.snapshot.verdict.state == "stopped", watcher.history()
    return said


def _let_go(watcher: Watcher, victim: int) -> None:
    went_on = _hurt(victim, signal.SIGCONT)
    watcher.wait_for("progressing", "slow", "ready", after=went_on, timeout_s=30)


def _killed(where: str, watcher: Watcher, victim: int, culprit: str = "TP1") -> Said:
    """It is called crashed, and this one is named; no other one was, before or after."""
    fault_at = _hurt(victim, signal.SIGKILL)
    said = watcher.wait_for("crashed", after=fault_at, timeout_s=30)
    until(lambda: watcher.snapshot.verdict.rule != "process-gone-open", 20, "a settled verdict")
    time.sleep(6.0)
    measured.fault(f"vLLM {culprit} killed: {where}", watcher, fault_at, said)
    last = watcher.snapshot.verdict
    assert last.state == "crashed", watcher.history()
    assert f"(pid {victim})" in last.headline or "launcher" in last.headline, watcher.history()
    assert "SIGKILL" in last.headline, watcher.history()
    named = {one.verdict.odd_ranks for one in watcher.said if one.at >= fault_at and one.state == "crashed"}
    assert named <= {(), (culprit,)} if culprit.startswith("TP") else named, watcher.history()
    assert said.at - fault_at <= NAMED_S, watcher.history()
    return said


def test_tp1_stopped_at_import_and_when_ready_then_killed(tmp_path: Path) -> None:
    """One start, three faults: it goes on after each SIGCONT."""
    with (
        vllm_server(tmp_path, "tiny", "-tp", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        victim = server.wait_for_workers(2)[1]
        time.sleep(3.0)
        assert not ALARMS & set(watcher.states()), watcher.history()
        stopped = _stopped("import", watcher, victim)
        assert stopped.verdict.phase == "spawn"
        _let_go(watcher, victim)
        ready = watcher.wait_for("ready", "crashed", timeout_s=START_S)
        assert ready.state == "ready", watcher.history()
        assert server.pid_of("VLLM::Worker_TP1") == victim, "the rank was taken from the birth order"
        assert not {"stalled", "crashed"} & set(watcher.states()), watcher.history()
        _stopped("ready", watcher, victim)
        _let_go(watcher, victim)
        watcher.wait_for("ready", after=ready.at + 1.0, timeout_s=30)
        _killed("ready", watcher, victim)


def test_tp1_killed_at_import(tmp_path: Path) -> None:
    with (
        vllm_server(tmp_path, "tiny", "-tp", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        victim = server.wait_for_workers(2)[1]
        time.sleep(3.0)
        assert not ALARMS & set(watcher.states()), watcher.history()
        _killed("import", watcher, victim)


def _loading(server: VllmServer) -> int:
    """Pid of TP1 once its load has begun."""
    server.wait_for_line("Starting to load model", START_S)
    return server.wait_for_title("VLLM::Worker_TP1", 60)


def test_tp1_stopped_then_killed_in_the_load(tmp_path: Path) -> None:
    """Killed at the moment of its SIGCONT: it has not moved, and is still in the load."""
    drop_page_cache(HOME / "models" / "mid")
    with (
        vllm_server(tmp_path, "mid", "-tp", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        victim = _loading(server)
        assert not ALARMS & set(watcher.states()), watcher.history()
        stopped = _stopped("load", watcher, victim)
        assert stopped.verdict.phase in ("dist_init", "weights")
        os.kill(victim, signal.SIGCONT)
        _killed("load", watcher, victim)


def test_the_engine_core_killed_when_ready(tmp_path: Path) -> None:
    with (
        vllm_server(tmp_path, "tiny") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        assert watcher.wait_for("ready", "crashed", timeout_s=START_S).state == "ready", watcher.history()
        _killed("ready", watcher, server.wait_for_title(ENGINE), culprit="engine core")


@pytest.mark.parametrize("path", ["/no/such/model", "nowhere"])
def test_the_model_path_is_wrong(tmp_path: Path, path: str) -> None:
    """A path that does not exist is taken for a name on the hub, which is not asked (HF_HUB_OFFLINE)."""
    with (
        vllm_server(tmp_path, path) as server,
        watching(tmp_path / "watch.jsonl.gz", pid=server.pid) as watcher,
    ):
        fault_at = server.wait_for_line("Traceback")
        verdict = watcher.wait_for("crashed", timeout_s=60)
        measured.fault(f"vLLM wrong model path {path}", watcher, fault_at, verdict)
        time.sleep(2.0)
        assert watcher.snapshot.verdict.state == "crashed", watcher.history()
        assert path in watcher.snapshot.verdict.headline or "model" in watcher.snapshot.verdict.headline
