"""Real vLLM servers that wait for peers which never come; and what a killed launcher leaves behind."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tests.real import measured
from tests.real.server import free_port, until
from tests.real.vllm.server import ENGINE, START_S, vllm_server
from tests.real.watching import ALARMS, Watcher, watching


def test_a_node_that_never_comes_and_orphans_of_the_launcher(tmp_path: Path) -> None:
    peer = free_port() + 7
    flags = (
        "-tp",
        "2",
        "--nnodes",
        "2",
        "--node-rank",
        "0",
        "--master-addr",
        "127.0.0.1",
        "--master-port",
        str(peer),
    )
    with (
        vllm_server(tmp_path, "tiny", *flags) as server,
        watching(tmp_path / "watch.jsonl.gz", pid=server.pid) as watcher,
    ):
        began = server.wait_for_line("distributed_init_method=", START_S)
        waits = watcher.wait_for("waiting-by-design", after=began - 1.0, timeout_s=60)
        measured.fault("vLLM node 1 of 2 never comes", watcher, began, waits)
        assert (waits.verdict.rule, waits.verdict.odd_ranks) == ("node-missing", ("node 1",)), watcher.history()
        assert waits.verdict.phase == "dist_init"
        time.sleep(10.0)
        assert watcher.snapshot.verdict.state == "waiting-by-design", watcher.history()
        assert not ALARMS & set(watcher.states()), watcher.history()

        engine = server.wait_for_title(ENGINE)
        below = [pid for pid in server.tree() if pid != server.pid]
        try:
            fault_at = time.time()
            os.kill(server.pid, signal.SIGKILL)
            crashed = watcher.wait_for("crashed", after=fault_at, timeout_s=30)
            measured.fault("vLLM launcher killed while it waits", watcher, fault_at, crashed)
            time.sleep(4.0)
            alive = [pid for pid in below if Path(f"/proc/{pid}").exists()]
            print("left behind:", alive, "engine core:", engine)
            last = watcher.snapshot.verdict
            assert last.state == "crashed" and "SIGKILL" in last.headline, watcher.history()
            assert alive, "vLLM leaves its engine core and its workers behind"
            assert any("left behind" in fact.text for fact in last.evidence), last.evidence
            _named_beside_the_next_start(tmp_path, alive)
        finally:
            _end(below)


def test_a_dp_peer_that_never_comes(tmp_path: Path) -> None:
    rpc = free_port() + 9
    flags = ("--data-parallel-size", "2", "--data-parallel-size-local", "1", "--data-parallel-address", "127.0.0.1",
             "--data-parallel-rpc-port", str(rpc), "--api-server-count", "1")  # fmt: skip
    with (
        vllm_server(tmp_path, "tiny", *flags) as server,
        watching(tmp_path / "watch.jsonl.gz", pid=server.pid) as watcher,
    ):
        below: list[int] = []
        try:
            began = server.wait_for_line("Waiting for READY message", START_S)
            below = [pid for pid in server.tree() if pid != server.pid]
            waits = watcher.wait_for("waiting-by-design", "ready", *ALARMS, after=began - 1.0, timeout_s=60)
            assert waits.state == "waiting-by-design", watcher.history()
            measured.fault("vLLM DP1 of 2 never comes", watcher, began, waits)
            assert (waits.verdict.rule, waits.verdict.odd_ranks) == ("engine-missing", ("DP1",)), watcher.history()
            time.sleep(20.0)
            assert watcher.snapshot.verdict.state == "waiting-by-design", watcher.history()
        finally:
            _end(below)


def _named_beside_the_next_start(tmp_path: Path, orphans: list[int]) -> None:
    with (
        vllm_server(tmp_path, "tiny", log="next.log") as server,
        watching(tmp_path / "next.jsonl.gz", pid=server.pid) as watcher,
    ):
        until(lambda: _told_of(watcher, orphans), 20, f"the orphans {orphans} to be named")
        named_s = time.time() - server.began_at
        print(
            f"orphans named {named_s:.1f} s after the launch of the next start: {watcher.snapshot.verdict.evidence}"
        )


def _told_of(watcher: Watcher, pids: list[int]) -> bool:
    """Whether a fact of the verdict names one of these."""
    facts = [fact.text for fact in watcher.snapshot.verdict.evidence]
    return any(f"pid {pid} " in text for pid in pids for text in facts)


def _end(pids: list[int]) -> None:
    """End what the launcher has left behind; by pid, while the test still knows them."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
