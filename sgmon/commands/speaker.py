"""Lines for a terminal that may not be read: a thread writes them, so that the watch does not wait.

logging's QueueListener does not serve: its ``stop`` joins the writing thread without a deadline, and its handler
writes to the same terminal when the queue is full.
"""

from __future__ import annotations

import queue
import sys
import threading
from typing import TextIO

_WAITING_LINES = 64
CLOSE_S = 1.0


class Speaker:
    """``say`` returns at once. While the terminal takes nothing, 64 lines wait and newer ones are dropped."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._lines: queue.Queue[str | None] = queue.Queue(_WAITING_LINES)
        self._thread = threading.Thread(target=self._run, name="speaker", daemon=True)
        self._thread.start()

    def say(self, line: str) -> None:
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            pass

    def close(self) -> None:
        """Wait for the lines that are left, at most ``CLOSE_S``."""
        try:
            self._lines.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except (OSError, ValueError):
                return  # the terminal is gone
