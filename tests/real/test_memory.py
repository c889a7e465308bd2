"""Beside a real server: its start is recorded, kept in the history, and compared with its own numbers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sgmon.recording import codec
from sgmon.recording.replay import ReplaySource
from sgmon.watch.engine import Engine
from tests.real.server import free_port, real_server, sgmon

SECRET = "planted-api-key-4711"


def test_a_start_is_recorded_kept_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    recording, port = tmp_path / "start.jsonl.gz", free_port()
    command = [sys.executable, "-m", "tui_app.cli", "record", "--port", str(port), str(recording)]
    recorder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        with real_server(tmp_path, "tiny", "--tp", "2", "--enable-metrics", "--api-key", SECRET, port=port) as server:
            done = sgmon("wait", "--port", str(port), "--timeout", "6m", "--json")
            assert done.returncode == 0, done.stderr
            live = json.loads(done.stdout)
            bundle = tmp_path / "report.zip"
            report = sgmon("report", "--port", str(port), "-o", str(bundle))
            assert report.returncode == 0, report.stderr
            pid = server.pid
        recorder.send_signal(signal.SIGTERM)
        recorder.wait(20)
    finally:
        recorder.kill()

    engine = Engine(ReplaySource(recording, speed=0))
    engine.run_here()
    states = [change.state for change in engine.snapshot.verdicts]
    assert "ready" in states
    assert not {"stalled", "stopped"} & set(states)
    assert engine.snapshot.server is not None and engine.snapshot.server.pid == pid
    assert "ready (exit code 0)" in (tmp_path / "summary.md").read_text()

    runs = json.loads(sgmon("runs", "--json").stdout)["runs"]
    assert [one["outcome"] for one in runs] == ["ready"]  # two watches have seen it: it is one start
    own = dict(runs[0]["own"])
    seen = {one["name"]: one["at_s"] for one in runs[0]["milestones"]}
    assert abs(own["tokenizer_e2e"] - (seen["scheduler_ready"] - seen["args"])) < 4
    assert live["usual"] is None  # the first start has no number

    with zipfile.ZipFile(bundle) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith(".gz"):
                content = "\n".join(repr(event) for event in codec.events_of(content)).encode()
            assert SECRET.encode() not in content, name
