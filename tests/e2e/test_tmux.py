"""A real tmux shows what was painted: it has abilities of its own, which differ by version."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.terminal import LIMIT_S

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[list[str]]:
    """The command of a server of its own, without the user's configuration."""
    argv = ["tmux", "-S", str(tmp_path / "socket"), "-f", "/dev/null"]
    yield argv
    subprocess.run([*argv, "kill-server"], check=False, capture_output=True)


@pytest.mark.parametrize("term", ["screen-256color", "tmux-256color"])
def test_rules_and_bars_are_as_long_as_they_were_painted(tmux: list[str], term: str) -> None:
    """tmux 3.3 repeats ASCII alone by REP: rules of 60 cells were one cell, and the rest of the row stood wrong."""
    command = f"TERM={term} {sys.executable} -m tests.ui.preview stuck; sleep {LIMIT_S}"
    root = str(Path(__file__).resolve().parents[2])
    # readline, which some other test may load, puts COLUMNS and LINES of 80x24 there; Textual believes them.
    kept = {n: value for n, value in os.environ.items() if not n.startswith("TMUX") and n not in ("COLUMNS", "LINES")}
    env = kept | {"LC_ALL": "C.UTF-8"}
    words = ["new-session", "-d", "-s", "one", "-x", "120", "-y", "40", "-c", root, command]
    subprocess.run([*tmux, *words], check=True, env=env)
    _until(tmux, "STALLED", " 3 workers ", " 4 log ")
    subprocess.run([*tmux, "send-keys", "-t", "one:", "v"], check=True)
    _until(tmux, "because")
    subprocess.run([*tmux, "send-keys", "-t", "one:", "q"], check=True)  # painted again: tmux has answered by now
    shown = _until(tmux, " 3 workers ", " 4 log ")
    heads = [row for row in shown.splitlines() if " 3 workers " in row or " 4 log " in row]
    assert len(heads) == 2 and all("─" * 20 in row for row in heads), shown


def _until(tmux: list[str], *words: str) -> str:
    """The screen, when it has these words and stays as it is."""
    end, before = time.monotonic() + LIMIT_S, ""
    while True:
        argv = [*tmux, "capture-pane", "-p", "-t", "one:"]
        shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        if shown == before and all(word in shown for word in words):
            return shown
        assert time.monotonic() < end, shown
        before = shown
        time.sleep(0.2)
