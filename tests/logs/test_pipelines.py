"""Real programs between a server and its log: a pipeline, script, tmux pipe-pane."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sgmon.discovery import inner, logfile
from sgmon.discovery.logtarget import LogTarget
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def talker(tmp_path) -> Path:
    """Says one word, writes its pid into a file, and stays."""
    path = tmp_path / "talker"
    path.write_text(
        f"#!/bin/sh\necho hello\necho $$ > {tmp_path}/pid.new\nmv {tmp_path}/pid.new {tmp_path}/pid\nexec sleep 1000\n"
    )
    path.chmod(0o755)
    return path


def pid_of(talker: Path) -> int:
    place = talker.parent / "pid"
    eventually(place.exists)
    return int(place.read_text())


def find(pid: int) -> LogTarget:
    return logfile.find(inner.of("/proc", pid))


@pytest.fixture
def shell(talker) -> Iterator[Callable[..., subprocess.Popen]]:
    started: list[subprocess.Popen] = []

    def start(line: str) -> int:
        quiet = subprocess.DEVNULL
        started.append(
            subprocess.Popen(["sh", "-c", line], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        )
        return pid_of(talker)

    yield start
    for child in started:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def test_a_pipeline(talker, shell, tmp_path):
    log = tmp_path / "log"
    pid = shell(f"{talker} 2>&1 | cat -u | tee {log} | cat > /dev/null")
    eventually(lambda: find(pid).path)
    found = find(pid)
    assert (
        found.path == str(log) and " -> pipe -> cat (pid " in found.source and " -> pipe -> tee (pid " in found.source
    )
    eventually(lambda: log.read_text() == "hello\n")


@pytest.mark.skipif(shutil.which("script") is None, reason="needs script (util-linux)")
def test_script(talker, shell, tmp_path):
    log = tmp_path / "typescript"
    pid = shell(f"script -q -f -c {talker} {log}")
    assert find(pid).path == str(log)
    try:
        eventually(lambda: "hello" in log.read_text())
    finally:
        os.kill(pid, signal.SIGKILL)  # script gives it a session of its own


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_tmux_pipe_pane(talker, tmp_path):
    log = tmp_path / "pane.log"
    tmux = ["tmux", "-L", f"sgmon-test-{os.getpid()}", "-f", "/dev/null"]
    env = {name: value for name, value in os.environ.items() if name != "TMUX"}
    subprocess.run([*tmux, "new-session", "-d", "sh"], check=True, env=env)
    try:
        assert subprocess.run([*tmux, "pipe-pane", f"cat >> {log}"], check=True, env=env).returncode == 0
        subprocess.run([*tmux, "send-keys", f"exec {talker}", "Enter"], check=True, env=env)
        pid = pid_of(talker)
        eventually(lambda: find(pid).path)
        assert find(pid).path == str(log)
        eventually(lambda: "hello" in log.read_text())
    finally:
        subprocess.run([*tmux, "kill-server"], check=False, env=env)
