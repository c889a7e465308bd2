"""A terminal of pyte that also has REP (repeat the last character) and line drawing, as xterm, tmux and others have."""

from __future__ import annotations

import codecs
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


class RepeatingStream(pyte.Stream):
    """Takes bytes in UTF-8, and the character sets that pyte ignores there."""

    csi: ClassVar = {**pyte.Stream.csi, "b": "repeat_last"}
    events = frozenset(itertools.chain(pyte.Stream.events, ["repeat_last"]))

    def __init__(self, screen: RepeatingScreen) -> None:
        super().__init__(screen)
        self.use_utf8 = False
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def feed(self, data: bytes) -> None:  # type: ignore[override]
        super().feed(self._decode(data))
