"""Real servers with a fault: the state, the rank to blame, and how long it takes from the fault to the verdict."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.real import measured
from tests.real.server import HOME, copy_model, drop_page_cache, real_server
from tests.real.watching import ALARMS, Said, Watcher, watching

#: a stopped or killed process is certain the moment it is read; a reading comes each second, later on a busy machine
AT_ONCE_S = 4.0


def _hurt(pid: int, number: signal.Signals) -> float:
    os.kill(pid, number)
    return time.time()


def _check(situation: str, watcher: Watcher, fault_at: float, state: str, *, within_s: float = AT_ONCE_S) -> Said:
    """It is called ``state``, because of TP1, in time; nothing was called bad before."""
    verdict = watcher.wait_for(state, after=fault_at, timeout_s=30, odd="TP1")
    measured.fault(situation, watcher, fault_at, verdict)
    assert verdict.verdict.odd_ranks == ("TP1",)
    assert verdict.at - fault_at <= within_s, watcher.history()
    return verdict


def _died(said: Said, pid: int) -> bool:
    """Whether the verdict rests on this process's end; that the order may still become known is no matter."""
    return said.verdict.rule.startswith("process-gone") and pid in {fact.pid for fact in said.verdict.evidence}


def test_tp1_stopped_at_import_and_in_the_warmup_then_killed_when_ready(tmp_path: Path) -> None:
    """One start, three faults: it goes on after each SIGCONT."""
    with (
        real_server(tmp_path, "tiny", "--tp", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        victim = server.wait_for_workers(2)[1]
        time.sleep(2.0)
        assert not ALARMS & set(watcher.states())
        stopped = _check("TP1 stopped at import", watcher, _hurt(victim, signal.SIGSTOP), "stopped")
        assert stopped.verdict.phase in ("launch", "spawn")
        went_on = _hurt(victim, signal.SIGCONT)
        watcher.wait_for("progressing", "slow", after=went_on, timeout_s=20)

        server.wait_for_line("Uvicorn running")
        assert server.pid_of("sglang::scheduler_TP1") == victim, "the rank was taken from the birth order"
        assert not ALARMS & set(watcher.states(went_on + 3.0))
        stopped = _check("TP1 stopped in the warm-up", watcher, _hurt(victim, signal.SIGSTOP), "stopped")
        assert stopped.verdict.phase in ("http", "warmup")
        went_on = _hurt(victim, signal.SIGCONT)

        ready = watcher.wait_for("ready", after=went_on)
        assert not ALARMS & set(watcher.states(went_on + 3.0)), watcher.history()
        time.sleep(2.0)
        assert watcher.snapshot.verdict.state == "ready"
        killed = _check("TP1 killed when ready", watcher, _hurt(victim, signal.SIGKILL), "crashed")
        assert _died(killed, victim)
        assert killed.at > ready.at


def test_tp1_killed_at_import(tmp_path: Path) -> None:
    with (
        real_server(tmp_path, "tiny", "--tp", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        victim = server.wait_for_workers(2)[1]
        time.sleep(2.0)
        assert not ALARMS & set(watcher.states())
        killed = _check("TP1 killed at import", watcher, _hurt(victim, signal.SIGKILL), "crashed")
        assert _died(killed, victim)


def test_tp1_killed_in_the_load(tmp_path: Path) -> None:
    drop_page_cache(HOME / "models" / "mid")
    with (
        real_server(tmp_path, "mid", "--tp", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        server.wait_for_line("TP1] Load weight begin")
        assert not ALARMS & set(watcher.states())
        victim = server.pid_of("sglang::scheduler_TP1")
        assert victim is not None
        killed = _check("TP1 killed in the load", watcher, _hurt(victim, signal.SIGKILL), "crashed")
        assert _died(killed, victim) and killed.verdict.phase == "weights"


def test_a_peer_node_that_comes_late(tmp_path: Path) -> None:
    with (
        real_server(tmp_path, "tiny", *_node(0)) as first,
        watching(tmp_path / "node0.jsonl.gz", pid=first.pid) as watcher,
    ):
        began = first.wait_for_line("Init parallel begin")
        waits = watcher.wait_for("waiting-by-design", timeout_s=40)
        measured.fault("node 1 of 2 comes 25 s late", watcher, began, waits)
        assert waits.verdict.odd_ranks == ("node 1",)
        time.sleep(max(0.0, began + 25.0 - time.time()))
        with (
            real_server(tmp_path, "tiny", *_node(1), port=first.port + 1),
            watching(tmp_path / "node1.jsonl.gz", port=first.port + 1) as other,
        ):
            ready = watcher.wait_for("ready", "crashed")
            assert ready.state == "ready", first.text()[-2000:]
            assert not ALARMS & set(watcher.states()), watcher.history()
            here = other.wait_for("ready", timeout_s=20)
            assert here.verdict.rule == "ready-node"
            assert not ALARMS & set(other.states()), other.history()


def _node(rank: int) -> tuple[str, ...]:
    return ("--tp", "2", "--nnodes", "2", "--node-rank", str(rank), "--dist-init-addr", "127.0.0.1:20577")


SHARD = "model-00003-of-00005.safetensors"


@pytest.mark.parametrize(
    ("damage", "needle", "cause"),
    [("missing", "incomplete download", "weights_missing"), ("truncated", "Error", "weights_corrupt")],
)
def test_a_shard_is_damaged(tmp_path: Path, damage: str, needle: str, cause: str) -> None:
    folder = copy_model("tiny", tmp_path / "model")
    shard = folder / SHARD
    if damage == "missing":
        shard.unlink()
    else:
        os.truncate(shard, 300_000)
    with (
        real_server(tmp_path, str(folder), "--tp", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        server.wait_for_line("Load weight begin")
        assert not ALARMS & set(watcher.states()), watcher.history()
        fault_at = server.wait_for_line(needle)
        measured.fault(f"a shard is {damage}", watcher, fault_at, watcher.wait_for("crashed", timeout_s=30))
        time.sleep(2.0)
        _ended_by(watcher, cause)
        assert watcher.snapshot.verdict.odd_ranks


@pytest.mark.parametrize(
    ("path", "cause"),
    [("/no/such/model", "model_not_found"), ("nowhere", "hub_unreachable")],
)
def test_the_model_path_is_wrong(tmp_path: Path, path: str, cause: str) -> None:
    """A relative path that does not exist is taken for a name on the hub, which is not asked (HF_HUB_OFFLINE)."""
    with (
        real_server(tmp_path, path) as server,
        watching(tmp_path / "watch.jsonl.gz", pid=server.pid) as watcher,
    ):
        fault_at = server.wait_for_line("Traceback")
        verdict = watcher.wait_for("crashed", timeout_s=30)
        measured.fault(f"wrong model path {path}", watcher, fault_at, verdict)
        time.sleep(2.0)
        _ended_by(watcher, cause)


def _ended_by(watcher: Watcher, cause: str) -> None:
    """It is called crashed, and the log's first cause is of this kind."""
    error = watcher.snapshot.log.error
    assert watcher.snapshot.verdict.state == "crashed", watcher.history()
    assert error is not None and error.kind == cause, (error, watcher.history())
