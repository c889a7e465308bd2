"""A log alone on the whole screen: from stdin with the keys of the terminal, and from a command."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from tests.e2e.terminal import Terminal
from tests.logs.test_log_only import OOM, START

pytestmark = pytest.mark.timeout(120)
#: an empty process list: whatever servers run on this machine, none is seen
EMPTY = ("--no-gpu", "--no-http")


@pytest.fixture
def proc(tmp_path) -> str:
    (tmp_path / "proc" / "1").mkdir(parents=True)
    return str(tmp_path / "proc")


class Piped(Terminal):
    """``cat FILE - | sgmon --log -`` in a shell on a terminal of its own."""

    def __init__(self, command: str, *argv: str) -> None:
        self.command = command
        super().__init__(*argv)

    def run(self, argv: list[str], env: dict[str, str]) -> None:
        os.execve("/bin/sh", ["sh", "-c", f"{self.command} | {shlex.join(argv)}"], env)


def test_stdin_with_keys(tmp_path, proc):
    os.mkfifo(tmp_path / "more")
    (tmp_path / "log").write_text(START)
    command = f"cat {tmp_path}/log {tmp_path}/more"
    with Piped(command, "--log", "-", "--proc-root", proc, *EMPTY) as terminal:
        terminal.until(lambda text: "log only" in text and "Load weight begin" in text)
        writer = os.open(tmp_path / "more", os.O_WRONLY)
        os.write(writer, OOM.encode())
        text = terminal.until(lambda text: "CRASHED" in text.upper() and "out of" in text.lower())
        assert "log only" in text
        terminal.press("?")
        terminal.until(lambda text: "help" in text.lower() and "log only" not in text.splitlines()[-1])
        terminal.press("q")
        os.close(writer)
        terminal.press("qq")
        assert terminal.wait() == 0


def test_a_command_on_the_screen(tmp_path, proc):
    (tmp_path / "log").write_text(START)
    command = f"tail -n +1 -f {tmp_path}/log"
    with Terminal("--log-command", command, "--proc-root", proc, *EMPTY) as terminal:
        text = terminal.until(lambda text: "log only" in text and "Load weight begin" in text)
        assert "m · TP2" in text and "weights" in text  # the startup panel reads the log's arguments and phases
        terminal.press("qq")
        assert terminal.wait() == 0


def cli(*argv: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tui_app.cli", *argv], capture_output=True, text=True, timeout=60, check=False, **more
    )


def test_status_of_a_pipe(proc):
    done = cli("status", "--log", "-", "--proc-root", proc, *EMPTY, input=START + OOM)
    assert done.returncode == 5 and "log only" in done.stdout and "TP1" in done.stdout, done


def test_wait_with_a_command(tmp_path, proc):
    (tmp_path / "log").write_text(START + OOM)
    done = cli("wait", "--log-command", f"cat {tmp_path}/log", "--proc-root", proc, *EMPTY, "--timeout", "50s")
    assert done.returncode == 5 and "log only" in done.stdout, done


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--log-command", "no-such-program x"], "no program 'no-such-program'"),
        (["--log-command", "'"], "quotation"),
        (["--log-command", " "], "empty"),
        (["--log-command", "cat x", "--log", "/etc/hostname"], "two logs"),
    ],
)
def test_bad_usage(argv, words):
    done = cli("status", *argv, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1


def test_stdin_that_is_the_terminal():
    with Terminal("status", "--log", "-") as terminal:
        terminal.until(lambda text: "kubectl logs -f POD | sgmon --log -" in text)
        assert terminal.wait() == 2
