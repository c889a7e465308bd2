"""A terminal of pyte that also has REP (repeat the last character), as xterm, tmux, kitty and others have."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import pyte


class RepeatingScreen(pyte.Screen):
    """repeats: what REP repeats: "all", "ascii" (tmux up to 3.3) or "none". ``answers``: what the terminal has answered
    to questions, oldest first."""

    def __init__(self, columns: int, lines: int, repeats: str = "all") -> None:
        self._last = " "
        self._repeats = repeats
        self.answers: list[str] = []
        super().__init__(columns, lines)

    def draw(self, data: str) -> None:
        super().draw(data)
        self._last = data[-1]

    def repeat_last(self, count: int = 1, **_: Any) -> None:
        if self._repeats == "all" or (self._repeats == "ascii" and self._last.isascii()):
            super().draw(self._last * (count or 1))

    def write_process_input(self, data: str) -> None:
        self.answers.append(data)


class RepeatingStream(pyte.ByteStream):
    csi: ClassVar = {**pyte.ByteStream.csi, "b": "repeat_last"}
    events = frozenset(itertools.chain(pyte.ByteStream.events, ["repeat_last"]))
