"""However the starter ends, no process and no file of the play is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sgmon import demo
from tests.demo.playing import SPEED, rank_pid
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
RUN = """
import argparse, sys
from sgmon.commands import demo
parser = argparse.ArgumentParser()
demo.add_arguments(parser)
sys.exit(demo.run(parser.parse_args()))
"""


def server_only(*words: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    command = [sys.executable, "-c", RUN, "healthy", "--server-only", "--tp", "2", "--speed", str(SPEED), *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert child.stdout
    return child, json.loads(child.stdout.readline())


def session_is_empty(session: int) -> bool:
    """No process of the server's session but zombies, which hold nothing."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _parent, _group, owner = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(owner) == session and state not in "ZX":
            return False
    return True


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_starter_is_signalled(signum: signal.Signals) -> None:
    child, facts = server_only()
    assert set(facts) == {"pid", "port", "log", "scenario", "gpus"}
    directory = Path(facts["log"]).parent
    assert directory.exists() and not session_is_empty(facts["pid"])
    try:
        child.send_signal(signum)
        child.wait(timeout=100)
    finally:
        child.kill()  # a failure here must not leave a server that other tests find
    eventually(lambda: session_is_empty(facts["pid"]) and not directory.exists())


def test_starter_ends_without_stop() -> None:
    code = "import os\nfrom sgmon import demo\ns = demo.start('healthy', tp=2)\nprint(s.pid, s.directory, flush=True)\nos._exit(0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    pid, directory = done.stdout.split()
    eventually(lambda: session_is_empty(int(pid)) and not Path(directory).exists())


def test_launcher_is_killed() -> None:
    """The ranks die with it (PR_SET_PDEATHSIG); the log stays until the play is stopped."""
    with demo.start("healthy", tp=2, speed=SPEED) as server:
        rank_pid(server, 1)
        os.kill(server.pid, signal.SIGKILL)
        assert server.wait() == -9
        eventually(lambda: session_is_empty(server.pid))
        assert Path(server.log).exists()
    assert not Path(server.directory).exists()


def test_guard_is_killed() -> None:
    with demo.start("healthy", tp=2, speed=SPEED) as server:
        guard = int(Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[1])
        rank_pid(server, 1)
        os.kill(guard, signal.SIGKILL)
        eventually(lambda: session_is_empty(server.pid))
    assert not Path(server.directory).exists()


def test_stop_twice(tmp_path: Path) -> None:
    server = demo.start("healthy", tp=2, directory=str(tmp_path / "play"))
    server.stop()
    server.stop()
    assert not (tmp_path / "play").exists()
    assert server.wait() is None


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"scenario": "no-such"}, "no scenario 'no-such'; there are: healthy"),
        ({"scenario": "healthy", "version": "0.1"}, "plays SGLang 0.5.23 and 0.5.9"),
        ({"scenario": "vllm", "version": "0.5.23"}, "plays vLLM 0.32.0"),
        ({"scenario": "healthy", "speed": 0}, "above 0"),
        ({"scenario": "stuck-rank", "tp": 4}, "--tp 6 to 16, not 4"),
        ({"scenario": "missing-peer", "tp": 5}, "--tp 4 to 16, not 5"),
    ],
)
def test_refusals(words: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        demo.start(**words)


def test_a_directory_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(ValueError, match="is not empty"):
        demo.start("healthy", directory=str(tmp_path))
    assert (tmp_path / "mine").exists()
