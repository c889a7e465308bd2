"""In tmux: what is on the screen, a size that changes, text selected with the mouse, and a quiet end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux")]
LIMIT_S = 60.0


class Tmux:
    """A tmux server of its own, with one window of 120x40."""

    def __init__(self, folder: Path, command: str) -> None:
        self._base = ["tmux", "-S", str(folder / "socket"), "-f", "/dev/null"]
        # readline, which some other test may load, puts COLUMNS and LINES of 80x24 there; Textual believes them.
        own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        environment = {**own, "TMPDIR": str(folder)}
        start = ["new-session", "-d", "-x", "120", "-y", "40", command]
        subprocess.run([*self._base, *start], check=True, timeout=LIMIT_S, env=environment)
        self.do("set", "-g", "set-clipboard", "on")

    def do(self, *words: str) -> str:
        return subprocess.run(
            [*self._base, *words], check=False, timeout=LIMIT_S, capture_output=True, text=True
        ).stdout

    def keys(self, *keys: str) -> None:
        self.do("send-keys", *keys)

    def mouse(self, *events: str) -> None:
        for event in events:
            self.do("send-keys", "-l", f"\x1b[<{event}")

    def until(self, done: Callable[[str], object]) -> str:
        """The text of the screen, when it is so."""
        deadline = time.monotonic() + LIMIT_S
        while not done(text := self.do("capture-pane", "-p")):
            assert time.monotonic() < deadline, text
            time.sleep(0.1)
        return text

    @property
    def is_running(self) -> bool:
        return bool(self.do("list-sessions"))


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    one = Tmux(tmp_path, f"{sys.executable} -m tests.ui.preview stuck --mouse")
    yield one
    one.do("kill-server")


def test_keys_sizes_and_the_end_in_tmux(tmux: Tmux) -> None:
    tmux.until(lambda text: "STALLED" in text and "3 workers" in text and "q quit" in text)
    tmux.keys("v")
    tmux.until(lambda text: "what was not seen" in text)
    tmux.keys("q")
    tmux.do("resize-window", "-x", "60", "-y", "15")
    low = tmux.until(lambda text: "▸1 startup  2 GPUs" in text and "q quit" in text.splitlines()[14])
    assert low.count("1 startup") == 1
    tmux.do("resize-window", "-x", "200", "-y", "50")
    wide = tmux.until(lambda text: "4 log" in text and "q quit" in text.splitlines()[49])
    assert any("1 startup" in row and "4 log" in row for row in wide.splitlines())  # the log stands beside
    tmux.keys("q", "q")
    eventually(lambda: not tmux.is_running, LIMIT_S)


def test_selected_text_reaches_the_clipboard_of_tmux_and_a_file(tmux: Tmux, tmp_path: Path) -> None:
    row = tmux.until(lambda text: "STALLED" in text and "q quit" in text).splitlines()[0]
    begin = row.index("TP3") + 1  # columns from 1
    tmux.mouse(f"0;{begin};1M", f"32;{begin + 1};1M", f"32;{begin + 2};1M", f"0;{begin + 2};1m")
    tmux.keys("c")
    tmux.until(lambda text: "selection copied; also in" in text)
    assert tmux.do("show-buffer") == "TP3"
    assert [path.read_text() for path in tmp_path.glob("sgmon-copied-*.txt")] == ["TP3\n"]


def test_the_mouse_can_be_left_to_the_terminal_and_taken_back(tmux: Tmux) -> None:
    def has_mouse(_: str = "") -> bool:
        return tmux.do("display", "-p", "#{mouse_any_flag}").strip() == "1"

    tmux.until(lambda text: "STALLED" in text and has_mouse())
    tmux.keys("M")
    tmux.until(lambda text: "the mouse is the terminal's" in text and not has_mouse())
    tmux.keys("M")
    tmux.until(has_mouse)


def test_a_size_that_comes_back_at_once_loses_no_row(tmux: Tmux) -> None:
    """tmux drops what lies beyond a smaller window; the application sees the size that it had before."""
    parts = ("STALLED", "1 startup", "3 workers", "4 log", "q quit")
    tmux.until(lambda text: all(part in text for part in parts))
    for _ in range(4):
        tmux.do("resize-window", "-x", "60", "-y", "15", ";", "resize-window", "-x", "120", "-y", "40")
        tmux.until(lambda text: all(part in text for part in parts))
