"""Run by ``test_terminal.py`` in a real pty: the log panel alone, following the file given."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from textual.app import App, ComposeResult

from sgmon.analyse.log.index import LogIndex
from tests.logview.fakes import describe, reading, snapshot
from widgets.logview import LogPanel


class FollowApp(App[None]):
    """Feeds the panel as the engine does: the index first, then a snapshot, four times a second."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.index, self.began = path, LogIndex(describe), time.monotonic()

    def compose(self) -> ComposeResult:
        yield LogPanel(self.index)

    def on_mount(self) -> None:
        self.query_one(LogPanel).focus()
        self.look()
        self.set_interval(0.25, self.look)

    def look(self) -> None:
        self.index.follow(reading(self.path))
        now = time.monotonic() - self.began
        self.query_one(LogPanel).receive(snapshot(now, ranks=2, last_byte_t=now))


if __name__ == "__main__":
    FollowApp(Path(sys.argv[1])).run()
