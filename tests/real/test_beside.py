"""Faults that come from beside the watched server: its port is taken after the watch began, a rank of the other node
is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.real import measured
from tests.real.server import HOME, drop_page_cache, free_port, real_server, until
from tests.real.watching import ALARMS, watching

#: two servers beside each other on a loaded machine
READY_S = 400.0


def test_the_port_is_taken_while_sgmon_already_watches(tmp_path: Path) -> None:
    """Said as soon as the stranger listens, long before the server itself finds out."""
    port = free_port()
    with (
        watching(tmp_path / "watch.jsonl.gz", port=port) as watcher,
        real_server(tmp_path, "tiny", "--tp", "2", port=port) as server,
    ):
        server.wait_for_workers(2)
        argv = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
        stranger = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            until(lambda: _listens(port), 60, "the stranger on the port")
            taken_at = time.time()
            said = watcher.wait_for("will-fail", "crashed", after=taken_at - measured.SLACK_S, timeout_s=60)
            measured.fault("port taken while sgmon watches", watcher, taken_at, said)
            assert said.state == "will-fail", watcher.history()
            assert f"pid {stranger.pid}" in said.verdict.headline and str(port) in said.verdict.headline
            failed_at = server.wait_for_line("address already in use")
            assert not {"suspect", "stalled", "stopped", "ready"} & set(watcher.states()), watcher.history()
            crash = watcher.wait_for("crashed", after=said.at, timeout_s=60)
            measured.fault("the same, at the bind error", watcher, failed_at, crash)
            error = watcher.snapshot.log.error
            assert error is not None and error.kind == "port_in_use"
        finally:
            stranger.kill()
            stranger.wait(10)


@pytest.mark.parametrize("phase", ["load", "ready"])
def test_two_nodes_of_which_the_second_loses_its_rank(phase: str, tmp_path: Path) -> None:
    """The sgmon of node 1 names the rank; that of node 0 says that the first end was on another node."""
    model = "mid" if phase == "load" else "tiny"
    if phase == "load":
        drop_page_cache(HOME / "models" / "mid")
    zero = free_port()
    one = free_port(zero)
    flags = ("--tp", "2", "--nnodes", "2", "--dist-init-addr", f"127.0.0.1:{free_port(zero, one)}", "--node-rank")
    with (
        real_server(tmp_path, model, *flags, "0", port=zero) as first,
        real_server(tmp_path, model, *flags, "1", port=one) as second,
        watching(tmp_path / "node0.jsonl.gz", pid=first.pid) as of_first,
        watching(tmp_path / "node1.jsonl.gz", pid=second.pid) as of_second,
    ):
        if phase == "ready":
            assert of_first.wait_for("ready", "crashed", timeout_s=READY_S).state == "ready", of_first.history()
            assert of_second.wait_for("ready", "crashed", timeout_s=READY_S).state == "ready", of_second.history()
        else:
            second.wait_for_line("TP1] Load weight begin")
        assert not ALARMS & set(of_first.states() + of_second.states()), (
            f"{of_first.history()}\n{of_second.history()}"
        )
        victim = second.wait_for_title("sglang::scheduler_TP1")
        killed_at = time.time()
        os.kill(victim, signal.SIGKILL)
        there = of_second.wait_for("crashed", after=killed_at, timeout_s=60)
        measured.fault(f"TP1 of node 1 killed: {phase}, seen there", of_second, killed_at, there)
        here = of_first.wait_for("crashed", after=killed_at, timeout_s=120)
        measured.fault(f"TP1 of node 1 killed: {phase}, seen by node 0", of_first, killed_at, here)
        until(lambda: first.ended, 120, "the end of node 0")
        time.sleep(6.0)
        assert f"TP1 (pid {victim}) was killed by SIGKILL" in of_second.snapshot.verdict.headline, of_second.history()
        print(f"NODES {phase}: node 0 says: {of_first.snapshot.verdict.headline}")
        assert "on another node" in of_first.snapshot.verdict.headline, of_first.history()
        said = [one.verdict for one in of_first.said if one.at >= killed_at and one.state == "crashed"]
        assert not any("killed by" in verdict.headline for verdict in said), of_first.history()


def _listens(port: int) -> bool:
    row = f":{port:04X} 00000000:0000 0A"
    return row in Path("/proc/net/tcp").read_text()
