"""Real starts without a fault: never called stalled, stopped or crashed, and ready in the end."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sgmon.model import Role
from tests.real import measured
from tests.real.server import HOME, drop_page_cache, free_port, real_server, until
from tests.real.watching import ALARMS, Watcher, watching


@contextmanager
def healthy_start(
    tmp_path: Path, situation: str, model: str, *flags: str, env: Mapping[str, str] | None = None, log: str = ""
) -> Iterator[Watcher]:
    """Watched from before the launch until it is ready, and beyond: the caller's body runs beside a ready server."""
    port = free_port()
    with (
        watching(tmp_path / "watch.jsonl.gz", port=port) as watcher,
        real_server(tmp_path, model, *flags, port=port, env=env, log=log) as server,
    ):
        ready = watcher.wait_for("ready", "crashed")
        measured.healthy(situation, server.began_at, ready, watcher.states(server.began_at))
        assert ready.state == "ready", server.text()[-2000:]
        assert not ALARMS & set(watcher.states())
        assert log or "fired up and ready to roll" in server.text()
        yield watcher
        assert watcher.snapshot.verdict.state == "ready"


def test_two_replicas(tmp_path: Path) -> None:
    with healthy_start(tmp_path, "healthy, dp 2", "tiny", "--dp", "2") as watcher:
        ranks = {p.rank for p in watcher.snapshot.procs.processes if p.role == Role.WORKER}
        assert ranks == {"DP0", "DP1"}


def test_weights_from_a_cold_page_cache(tmp_path: Path) -> None:
    drop_page_cache(HOME / "models" / "mid")
    with healthy_start(tmp_path, "healthy, tp 2, cold page cache", "mid", "--tp", "2") as watcher:
        assert any(clock.load_bytes for clock in watcher.snapshot.clocks)


def test_kernels_compiled_anew(tmp_path: Path) -> None:
    cache = tmp_path / "inductor"
    cold = {"TORCHINDUCTOR_CACHE_DIR": str(cache)}
    with healthy_start(tmp_path, "healthy, tp 2, cold JIT", "tiny", "--tp", "2", env=cold):
        assert any(cache.rglob("*.so")), "nothing was compiled: this start was no test of a cold JIT"


def test_a_start_with_tls(tmp_path: Path) -> None:
    """/health is asked over TLS, although nobody knows who signed."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    argv += ["-addext", "subjectAltName=IP:127.0.0.1"]  # the server's own warm-up request checks it
    subprocess.run(
        [*argv, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True, timeout=60
    )
    flags = ("--ssl-keyfile", str(key), "--ssl-certfile", str(certificate))
    with healthy_start(tmp_path, "healthy, tp 1, TLS", "tiny", *flags) as watcher:
        port = watcher.snapshot.port
        assert port is not None and port.status == 200, port
        assert not {"unhealthy", "unknown", "suspect"} & set(watcher.states()), watcher.history()


def test_output_to_dev_null(tmp_path: Path) -> None:
    """The phase then comes from stacks that sgmon takes by itself, ready from the port alone."""
    with healthy_start(tmp_path, "healthy, tp 2, no log", "tiny", "--tp", "2", log="/dev/null") as watcher:
        assert watcher.snapshot.log.lines == 0
        asked = watcher.snapshot.stacks_request
        assert asked is not None and asked.why == "auto: no log" and watcher.snapshot.stacks
        order = [one.verdict.phase for one in watcher.said]
        assert "dist_init" in order or "weights" in order or "warmup" in order, watcher.history()
        assert not {"suspect", "unknown"} & set(watcher.states()), watcher.history()


def test_another_sglang_holds_the_port(tmp_path: Path) -> None:
    """The first one is the healthy start of a single rank. The second must not take its ready line for its own."""
    with healthy_start(tmp_path, "healthy, tp 1", "tiny") as first:
        port = first.snapshot.server.args.port if first.snapshot.server else 0
        with (
            real_server(tmp_path, "tiny", port=port, log="second.log") as second,
            watching(tmp_path / "second.jsonl.gz", pid=second.pid) as watcher,
        ):
            second.wait_for_line("server_args=")
            until(lambda: _warned(watcher), 20, "the warning that the port is taken")
            fault_at = second.wait_for_line("address already in use")
            verdict = watcher.wait_for("crashed", "ready", timeout_s=60)
            measured.fault("port taken by another SGLang", watcher, fault_at, verdict)
            assert verdict.state == "crashed"
            assert verdict.verdict.rule == "log-error"
            assert watcher.snapshot.log.error is not None and watcher.snapshot.log.error.kind == "port_in_use"
            assert verdict.at - fault_at < 3.0
            until(lambda: "ready to roll" in second.text() or second.ended, 60, "the false ready line")
            assert "ready" not in watcher.states()


def _warned(watcher: Watcher) -> bool:
    return any("is held by" in fact.text for fact in watcher.snapshot.verdict.evidence)
