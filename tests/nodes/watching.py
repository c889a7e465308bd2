"""A watch of several machines in a test: its source runs in a thread, and what came of it is looked at."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from sgmon.analyse.store import Store
from sgmon.collect.probes.base import Clock
from sgmon.model import Event, NodeReading, Snapshot
from sgmon.remote.hosts import Reach
from sgmon.remote.merged import MergedSource
from sgmon.remote.source import RemoteSource
from sgmon.settings import Settings


class Watch:
    """Folds the events of each machine into a store of its own. A context manager: its end is the watch's."""

    def __init__(self, reached: Sequence[Reach], settings: Settings | dict[str, Settings] = Settings()) -> None:  # noqa: B008
        self.clock = Clock()
        of = settings if isinstance(settings, dict) else {one.name: settings for one in reached}
        self.source = MergedSource([RemoteSource(one, of[one.name], self.clock) for one in reached], self.clock)
        self.events: list[Event] = []
        self.links: dict[str, list[NodeReading]] = {one.name: [] for one in reached}
        self.came: list[tuple[float, Event]] = []  # (when it came, event)
        self._stores = {one.name: Store(self.clock.epoch) for one in reached}
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        for event in self.source:
            if isinstance(event.reading, NodeReading):
                self.links[event.node].append(event.reading)
            elif event.kind == "tick":
                for store in self._stores.values():
                    store.step(event)
                continue
            else:
                self._stores[event.node].step(event)
            self.came.append((self.clock.now(), event))

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> float:
        """Seconds until the watch has ended."""
        began = time.monotonic()
        self.source.stop()
        self._thread.join(20)
        assert not self._thread.is_alive()
        return time.monotonic() - began

    def snapshot(self, name: str) -> Snapshot:
        return self._stores[name].snapshot

    def state(self, name: str) -> str:
        return self.links[name][-1].state if self.links[name] else ""

    def since(self, t: float, name: str, kind: str) -> list[Event]:
        """Events of a node that came after ``t``."""
        return [event for at, event in list(self.came) if at > t and event.node == name and event.kind == kind]

    def wait_for(self, condition: Callable[[], Any], timeout_s: float = 90.0) -> Any:
        """The first true value; an AssertionError with what is known when the time is over."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            if value := condition():
                return value
            time.sleep(0.02)
        links = {name: readings[-1:] for name, readings in self.links.items()}
        raise AssertionError(f"not true after {timeout_s:g} s: {links}")
