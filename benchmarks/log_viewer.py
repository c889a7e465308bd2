"""The log panel alone in an application, for ``benchmarks.log`` to measure."""

from __future__ import annotations

import codecs
import os
import threading
import time
from pathlib import Path


def run_viewer(path: Path, hello: bool, folds: bool) -> None:
    """The panel alone, fed as the engine does it: four times a second; with the fold beside it if wanted."""
    from textual.app import App, ComposeResult
    from textual.widgets import Static

    from sgmon.analyse.log.fold import LogFold
    from sgmon.analyse.log.index import LogIndex
    from sgmon.model import LogReading, LogState, RankProgress, Snapshot
    from widgets.logview import LogPanel

    ranks = tuple(RankProgress(f"TP{n}", "", 1) for n in range(8))

    class Viewer(App[None]):
        def compose(self) -> ComposeResult:
            self.index, self.began, self.fold = LogIndex(), time.monotonic(), LogFold()
            yield Static("hello") if hello else LogPanel(self.index)

        def on_mount(self) -> None:
            if not hello:
                self.look()
                self.set_interval(0.25, self.look)
                threading.Thread(target=self.read, daemon=True).start()

        def read(self) -> None:
            """As the probe's and the engine's threads do: every 0.2 s, folded whole, a state for each piece."""
            decoder, at = codecs.getincrementaldecoder("utf-8")("replace"), 0
            with path.open("rb") as log:
                while folds:
                    data = os.pread(log.fileno(), 256 << 10, at)
                    at += len(data)
                    if data:
                        reading = LogReading(str(path), text=decoder.decode(data), size=at)
                        self.fold.feed(reading, time.monotonic() - self.began)
                        self.fold.state()
                    if len(data) < 256 << 10:
                        time.sleep(0.2)

        def look(self) -> None:
            status, t = path.stat(), time.monotonic() - self.began
            self.index.follow(LogReading(str(path), f"{status.st_dev}:{status.st_ino}", size=status.st_size))
            state = LogState(path=str(path), kind="file", last_byte_t=t, ranks=ranks)
            self.query_one(LogPanel).receive(Snapshot(t=t, log=state))

        def on_ready(self) -> None:
            if not hello:
                self.query_one(LogPanel).focus()
                self.look()

    Viewer().run()
