"""sgmon beside a real server: its live engine in this process, every change of its verdict kept with the wall clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sgmon.commands.live import live_engine, source_of
from sgmon.model import Snapshot, Verdict
from sgmon.recording.writer import Recorder
from sgmon.settings import Settings

#: what a healthy start must never be called, at any moment
ALARMS = frozenset({"stalled", "stopped", "crashed"})
#: what a fault may be called first
ANSWERS = ALARMS | {"suspect", "waiting-by-design", "unhealthy"}


@dataclass(frozen=True)
class Said:
    """A verdict, and when (wall clock) it was first published."""

    at: float
    verdict: Verdict

    @property
    def state(self) -> str:
        return self.verdict.state


class Watcher:
    """All probes, nothing remembered; the recording of the watch lies at ``path``."""

    def __init__(self, path: Path, **settings: object) -> None:
        self.path = path
        self.said: list[Said] = []
        self.snapshot = Snapshot()
        self._news = threading.Condition()
        chosen = Settings(gpu=False, **settings)  # type: ignore[arg-type]
        source = source_of(chosen)
        self._engine = live_engine(chosen, source=source, recorder=Recorder(path, source.epoch),
                                   remember=False)  # fmt: skip
        self._engine.subscribe(self._look)
        self._engine.start()

    def stop(self) -> None:
        self._engine.stop()

    def wait_for(self, *states: str, after: float = 0.0, timeout_s: float = 240.0, odd: str = "") -> Said:
        """The first verdict of these states (that blames ``odd``) published after ``after``."""

        def fits(one: Said) -> bool:
            return one.state in states and one.at >= after and (not odd or odd in one.verdict.odd_ranks)

        found = self._until(lambda: next((one for one in self.said if fits(one)), None), timeout_s)
        assert found is not None, f"no {states} in {timeout_s:.0f} s\n{self.history()}"
        return found

    def first(self, *states: str, after: float = 0.0) -> Said | None:
        with self._news:
            return next((one for one in self.said if one.state in states and one.at >= after), None)

    def states(self, after: float = 0.0, before: float = 1e12) -> list[str]:
        """The states in their order, repeats left out."""
        found: list[str] = []
        for one in list(self.said):
            if after <= one.at < before and (not found or found[-1] != one.state):
                found.append(one.state)
        return found

    def history(self) -> str:
        start = self.said[0].at if self.said else 0.0
        return "\n".join(
            f"{one.at - start:7.1f} {one.state:18} {one.verdict.rule:14} {one.verdict.headline}" for one in self.said
        )

    def _look(self, snapshot: Snapshot) -> None:
        with self._news:
            self.snapshot = snapshot
            old = self.said[-1].verdict if self.said else None
            new = snapshot.verdict
            if old is None or (old.state, old.rule, old.phase, old.odd_ranks) != (
                new.state,
                new.rule,
                new.phase,
                new.odd_ranks,
            ):
                self.said.append(Said(time.time(), new))
            self._news.notify_all()

    def _until(self, look: Callable[[], Said | None], timeout_s: float) -> Said | None:
        end = time.monotonic() + timeout_s
        with self._news:
            while (found := look()) is None and time.monotonic() < end:
                self._news.wait(1.0)
            return found


@contextmanager
def watching(path: Path, **settings: object) -> Iterator[Watcher]:
    """A recording and a history of the verdict; both are kept beside the log when the test fails."""
    watcher = Watcher(path, **settings)
    try:
        yield watcher
    finally:
        watcher.stop()
        print(watcher.history())
