"""`sgmon export` and `sgmon status --probe` as processes beside a simulated server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sgmon import demo
from tests.demo.playing import rank_pid
from tests.waiting import eventually
from tui_app.cli import main

SGMON = [sys.executable, "-m", "tui_app.cli"]


def asked(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as err:
        return err.code, json.load(err)


class Receiver(ThreadingHTTPServer):
    """Takes what is sent by OTLP."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        super().__init__(("127.0.0.1", 0), _Taking)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Taking(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_start_from_begin_to_ready(tmp_path: Path) -> None:
    """Probes, metrics, OTLP at the end; SIGTERM ends it with 0."""
    receiver = Receiver()
    with demo.start("healthy", tp=2, speed=6.0) as server:
        argv = ["export", "--pid", str(server.pid), "--listen-port", "0"]
        argv += ["--otlp", f"http://127.0.0.1:{receiver.server_address[1]}/v1/metrics"]
        run = subprocess.Popen([*SGMON, *argv], stderr=subprocess.PIPE, text=True)
        assert run.stderr is not None
        url = re.search(r"http://127\.0\.0\.1:\d+", run.stderr.readline())
        assert url is not None
        eventually(lambda: asked(f"{url[0]}/startupz")[0] == 200)
        assert asked(f"{url[0]}/livez")[0] == 200
        eventually(lambda: asked(f"{url[0]}/readyz")[0] == 200)
        with urllib.request.urlopen(f"{url[0]}/metrics", timeout=60) as answer:
            assert b'sgmon_state{state="ready"} 1.0' in answer.read()
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=120)
        assert run.returncode == 0
    receiver.shutdown()
    receiver.server_close()
    assert any(b"sgmon_state" in body and b"sgmon" in body for body in receiver.bodies)


def test_a_crash_over_textfile_and_one_look(tmp_path: Path) -> None:
    path = tmp_path / "sgmon.prom"
    with demo.start("healthy", tp=2, speed=8.0) as server:
        run = subprocess.Popen([*SGMON, "export", "--pid", str(server.pid), "--textfile", str(path)])
        eventually(path.exists)
        os.kill(rank_pid(server, 1), signal.SIGKILL)
        eventually(lambda: 'state="crashed"} 1.0' in path.read_text())
        assert path.stat().st_mode & 0o777 & ~0o022 == 0o644, "node_exporter is another user"
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=120) == 0


def test_one_look_for_an_exec_probe(capfd: pytest.CaptureFixture[str]) -> None:
    with demo.start("stopped", tp=2, speed=8.0) as server:
        pid = str(server.pid)
        eventually(lambda: main(["status", "--pid", pid, "--probe", "livez"]) == 3)
        said = json.loads(capfd.readouterr().out.splitlines()[-1])
        assert said["state"] == "stopped" and said["culprit"] == ["TP1"] and not said["ok"]
        assert main(["status", "--pid", pid, "--probe", "readyz"]) == 3


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--listen", "example.org"], "no IP address"),
        (["--listen-port", "99999"], "out of range"),
        (["--stall", "long"], "duration"),
        (["--textfile", "/tmp/x.txt"], ".prom"),
        (["--textfile", "/no/such/folder/x.prom"], "no folder"),
        (["--otlp", "collector:4318"], "no URL"),
    ],
)
def test_wrong_usage(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", *argv]) == 2
    said = capsys.readouterr().err
    assert words in said and len(said.strip().splitlines()) == 1


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    receiver = Receiver()
    assert main(["export", "--listen-port", str(receiver.server_address[1])]) == 1
    assert "--listen-port" in capsys.readouterr().err
    receiver.shutdown()
    receiver.server_close()
