"""tqdm bars as they arrive in a log file: a carriage return, the text, and no newline until the bar is closed.

Up to 0.5.9 the format of the shard bar ended in a newline of its own (srt/utils/common.py, BAR_FORMAT).
"""

from __future__ import annotations

import time

from sgmon.demo import console

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def clock(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute:02d}:{second:02d}"


def _cells(fraction: float, width: int = 10) -> str:
    full, part = divmod(round(fraction * width * 8), 8)
    return ("█" * full + (_EIGHTHS[part] if full < width else "")).ljust(width)[:width]


class Bar:
    """One bar. ``words`` picks the shard style ("40% Completed | 2/5"), else the block style."""

    def __init__(self, total: int, description: str = "", *, words: bool = False, ends_lines: bool = False):
        self._total = total
        self._description = description
        self._words = words
        self._end = "\n" if ends_lines else ""
        self._done = 0
        self._began = time.monotonic()
        self._last_width = 0
        self._draw()

    def describe(self, description: str) -> None:
        self._description = description
        self._draw()

    def update(self) -> None:
        self._done += 1
        self._draw()

    def close(self) -> None:
        self._draw()
        console.raw("\n")

    def _draw(self) -> None:
        took = time.monotonic() - self._began
        if self._done:
            each = max(took / self._done, 1e-4)
            rate = f"{1 / each:5.2f}it/s" if each < 1 else f"{each:5.2f}s/it"
            left = clock(each * (self._total - self._done))
        else:
            rate, left = "?it/s", "?"
        fraction = self._done / self._total
        times = f"[{clock(took)}<{left}, {rate}]"
        if self._words:
            text = (
                f"{self._description}: {fraction * 100:3.0f}% Completed | "
                f"{self._done}/{self._total} {times}{self._end}"
            )
        else:
            start = f"{self._description}: " if self._description else ""
            text = f"{start}{fraction * 100:3.0f}%|{_cells(fraction)}| {self._done}/{self._total} {times}"
        padding = "" if self._end else " " * max(0, self._last_width - len(text))
        self._last_width = len(text)
        console.raw("\r" + text + padding)
