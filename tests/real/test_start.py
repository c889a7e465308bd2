"""sgmon beside a real SGLang server, through ``--json``: what it says, of whom, and that 0 means ready."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from pathlib import Path

from sgmon.model import Role
from tests.real import measured
from tests.real.server import HOME as SERVER_HOME
from tests.real.server import Watch, drop_page_cache, free_port, real_server, sgmon, until
from tests.real.watching import ALARMS, watching


def _status(*argv: str) -> dict:
    return json.loads(sgmon("status", "--json", *argv).stdout)


def test_a_healthy_start_from_before_the_launch(tmp_path: Path) -> None:
    port = free_port()
    watch = Watch("--port", str(port), "--timeout", "6m")
    with (
        watching(tmp_path / "watch.jsonl.gz", port=port) as watcher,
        real_server(tmp_path, "tiny", "--tp", "2", port=port) as server,
    ):
        until(lambda: "Init parallel begin" in server.text(), 240, "the ranks to start")
        during = _status("--port", str(port))
        assert during["state"] not in ALARMS | {"ready"}
        result = watch.wait()
        assert watch.code == 0, watch.said
        ready = watcher.wait_for("ready")
        measured.healthy("healthy, tp 2", server.began_at, ready, watcher.states(server.began_at))
        assert result["state"] == "ready"
        assert result["server"]["version"] == "0.5.23"
        assert result["port"]["status"] == 200
        assert result["port"]["listeners"][0]["ours"] is True
        assert urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10).status == 200
        assert "fired up and ready to roll" in server.text()
        assert not ALARMS & set(watch.states), watch.result["verdicts"]
        ranks = {rank["rank"]: rank for rank in result["ranks"] if rank["role"] == Role.WORKER}
        assert set(ranks) == {"TP0", "TP1"}
        assert all(rank["same_log"] for rank in ranks.values())
        assert result["log"]["path"] == str(server.log)
    until(lambda: _status("--port", str(port))["state"] in ("waiting", "crashed"), 30, "the end to be noticed")


def test_a_peer_node_that_never_comes(tmp_path: Path) -> None:
    peer = free_port()
    flags = ("--tp", "2", "--nnodes", "2", "--node-rank", "0", "--dist-init-addr", f"127.0.0.1:{peer + 7}")
    with (
        real_server(tmp_path, "tiny", *flags) as server,
        watching(tmp_path / "watch.jsonl.gz", pid=server.pid) as watcher,
    ):
        began = server.wait_for_line("Init parallel begin")
        said = json.loads(sgmon("status", "--json", "--port", str(server.port), "--seconds", "45").stdout)
        assert said["state"] in ("waiting-by-design", "suspect", "stalled"), said["headline"]
        assert said["phase"] == "dist_init"
        assert said["odd_ranks"] == ["node 1"], said["headline"]
        measured.fault("node 1 of 2 never comes", watcher, began, watcher.wait_for("waiting-by-design"))
        watch = Watch("--port", str(server.port), "--timeout", "20s", "--quiet")
        watch.wait(60)
        assert watch.code in (3, 4)


def test_tp1_stopped_in_the_weight_load(tmp_path: Path) -> None:
    drop_page_cache(SERVER_HOME / "models" / "mid")
    with (
        real_server(tmp_path, "mid", "--tp", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        watch = Watch("--port", str(server.port), "--timeout", "6m", "--stall", "5s")
        server.wait_for_line("TP1] Load weight begin")
        victim = server.pid_of("sglang::scheduler_TP1")
        assert victim is not None
        os.kill(victim, signal.SIGSTOP)
        stopped_at = time.time()
        measured.fault("TP1 stopped in the load", watcher, stopped_at, watcher.wait_for("stopped", odd="TP1"))
        result = watch.wait(120)
        assert watch.code == 3, watch.said
        assert (result["state"], result["odd_ranks"]) == ("stopped", ["TP1"])
        os.kill(victim, signal.SIGCONT)
        again = Watch("--port", str(server.port), "--timeout", "5m")
        again.wait()
        assert again.code == 0, again.said


def test_the_port_is_held_by_another_server(tmp_path: Path) -> None:
    import http.server
    import threading

    with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        port = other.server_address[1]
        with (
            real_server(tmp_path, "tiny", port=port) as server,
            watching(tmp_path / "watch.jsonl.gz", pid=server.pid) as watcher,
        ):
            server.wait_for_line("server_args=")
            early = _status("--pid", str(server.pid))
            assert early["port"]["listeners"][0]["ours"] is False
            watch = Watch("--pid", str(server.pid), "--timeout", "4m")
            fault_at = server.wait_for_line("address already in use")
            measured.fault("port taken by an HTTP server", watcher, fault_at, watcher.wait_for("crashed"))
            result = watch.wait()
            assert watch.code == 5, watch.said
            assert (result["state"], result["rule"]) == ("crashed", "log-error")
            error = watcher.snapshot.log.error
            assert error is not None and error.kind == "port_in_use"
        other.shutdown()
