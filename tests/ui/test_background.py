"""The question for the terminal's background, in a terminal."""

from __future__ import annotations

import os
import pty
import sys
import threading

import pytest

from tui_app.output.background import BackgroundQuestion


def test_a_terminal_that_is_closed_before_its_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLORFGBG", raising=False)
    with os.fdopen(os.dup(slave)) as reading, os.fdopen(slave, "w") as writing:
        monkeypatch.setattr(sys, "stdin", reading)
        monkeypatch.setattr(sys, "stderr", writing)
        question = BackgroundQuestion()
        os.close(master)
        said: list[bool | None] = []
        thread = threading.Thread(target=lambda: said.append(question.answer()), daemon=True)
        thread.start()
        thread.join(60)
        assert said == [None]
