"""Commands that watch other machines, as a user types them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon import demo
from sgmon.demo import DemoServer
from sgmon.recording import codec
from tests.demo.playing import logged

VIA = "env SGMON_TEST_NODE={}"


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with demo.start("healthy", tp=2, speed=15.0) as started:
        logged(started, "ready to roll")
        yield started


def sgmon(server: DemoServer, *words: str, hosts: tuple[str, ...] = ("a", "b")) -> subprocess.CompletedProcess[str]:
    named = [word for name in hosts for word in ("--host", name)]
    argv = [sys.executable, "-m", "tui_app.cli", *words, *named, "--via", VIA, "--port", str(server.port), "--no-gpu"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def test_status_of_two(server):
    done = sgmon(server, "status", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    assert found["state"] == "ready"
    assert [node["name"] for node in found["nodes"]] == ["a", "b"]


def test_wait_and_record(server, tmp_path):
    assert sgmon(server, "wait", "--timeout", "60s", "--quiet").returncode == 0
    path = tmp_path / "two.jsonl.gz"
    done = sgmon(server, "record", str(path), "--until-end")
    assert done.returncode == 0, done.stderr
    events = list(codec.read(Path(path))[1])
    assert {event.node for event in events if event.kind == "procs"} == {"a", "b"}
    assert {event.reading.state for event in events if event.kind == "node"} >= {"connecting", "live"}


def test_a_host_that_cannot_be_reached_is_no_crash_of_the_command(server):
    argv = [sys.executable, "-m", "tui_app.cli", "status", "--host", "x", "--via", "sh -c 'exit 7' {}", "--no-gpu"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert "exit code 7" in done.stdout
    assert done.returncode in (4, 6)
    assert done.stderr == ""
