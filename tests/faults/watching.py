"""A watch under a fault: the real engine and probes, what --json says of it, and the screen that shows it live."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec

from sgmon.collect.gpu.probe import GpuProbe
from sgmon.collect.probes.base import Clock, Probe, Watched
from sgmon.collect.probes.logtail import LogProbe
from sgmon.collect.probes.port import PortProbe
from sgmon.collect.probes.procs import ProcsProbe
from sgmon.collect.probes.pyspy import StackProbe
from sgmon.collect.probes.server import ServerProbe
from sgmon.collect.source import LiveSource, Source
from sgmon.export.json import status_report
from sgmon.export.text import as_text
from sgmon.model import Snapshot
from sgmon.settings import Settings
from sgmon.watch.engine import Engine
from tests.faults.screen import Screen

#: seconds for an event on a machine that is loaded; what comes, comes much earlier
PATIENCE_S = 90.0
ALL = ("server", "procs", "log", "port")


class ShiftedClock(Clock):
    """The real clock, which a test can put forward instead of sleeping."""

    shift_s = 0.0

    def now(self) -> float:
        return super().now() + self.shift_s


class Watch:
    """One engine. Facts are awaited in the object that ``sgmon status --json`` prints."""

    def __init__(self, engine: Engine, screen: Screen, clock: ShiftedClock) -> None:
        self.engine = engine
        self.clock = clock
        self.screen = screen
        self._news = threading.Condition()
        self._snapshot = engine.snapshot
        self._before = set(threading.enumerate())
        engine.subscribe(self._take)
        screen.follow(engine)
        engine.start()

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    @property
    def json(self) -> dict[str, Any]:
        """The newest snapshot as it is printed."""
        return printed(self._snapshot)

    def until(self, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The first printed object for which ``holds`` is true."""
        with self._news:
            said = self.json
            while not holds(said):
                had = self._snapshot
                if not self._news.wait_for(partial(self._is_newer, had), PATIENCE_S):
                    raise AssertionError(f"nothing new in {PATIENCE_S:g} s: {said}")
                if self._snapshot.t - self.clock.shift_s > PATIENCE_S:
                    raise AssertionError(f"never so: {said}")
                said = self.json
        return said

    def _is_newer(self, than: Snapshot) -> bool:
        return self._snapshot is not than

    def shows(self, *words: str) -> str:
        """The screen, once all of ``words`` stand on it (white space apart)."""
        return self.screen.until(*words, limit_s=PATIENCE_S)

    def says(self, *words: str) -> None:
        """The text of ``sgmon status`` has these words."""
        text = " ".join(" ".join(as_text(self._snapshot)).split())
        for one in words:
            assert one in text, f"no {one!r} in: {text}"

    def missing(self) -> list[str]:
        """Why, of everything that the verdict says is unknown."""
        return [gap["why"] for gap in self.json["missing"]]

    def answers_keys(self) -> None:
        """A page opens and closes again: the loop of the screen is not held up."""
        self.screen.turns_a_page()

    def quits(self) -> None:
        """``stop`` returns, the engine's loop has ended, and no thread is left that could keep the process."""
        assert not self.engine.failure, self.engine.failure
        self.engine.stop()
        assert self.engine.ended.wait(PATIENCE_S), "the engine does not end"
        held = [one.name for one in set(threading.enumerate()) - self._before if not one.daemon]
        assert not held, f"these threads keep the process: {held}"

    def _take(self, snapshot: Snapshot) -> None:
        with self._news:
            self._snapshot = snapshot
            self._news.notify_all()


def printed(snapshot: Snapshot) -> dict[str, Any]:
    """What ``sgmon status --json`` prints of it."""
    said: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(status_report(snapshot)))
    return said


Make = Callable[[Watched, LiveSource], list[Probe]]


def probes_of(*kinds: str, more: Callable[[Watched], list[Probe]] | None = None) -> Make:
    """Makes the probes of these kinds: server procs log port gpu stacks; then ``more``."""

    def make(watched: Watched, source: LiveSource) -> list[Probe]:
        makers: dict[str, Callable[[], Probe]] = {
            "server": lambda: ServerProbe(watched),
            "procs": lambda: ProcsProbe(watched),
            "log": lambda: LogProbe(watched),
            "port": lambda: PortProbe(watched),
            "gpu": lambda: GpuProbe(watched),
            "stacks": lambda: StackProbe(watched, lambda: source.processes),
        }
        return [makers[kind]() for kind in kinds] + (more(watched) if more is not None else [])

    return make


@contextmanager
def watching(
    screen: Screen,
    settings: Settings,
    make: Make | None = None,
    source: Source | None = None,
    clock: ShiftedClock | None = None,
    **options: Any,
) -> Iterator[Watch]:
    """A watch that at its end, still under its fault, answers keys and quits."""
    clock = clock or ShiftedClock()
    source = source or LiveSource(settings, probes=make or probes_of(*ALL), clock=clock)
    engine = Engine(source, publish_s=0.05, auto_evidence=False, **options)
    watch = Watch(engine, screen, clock)
    try:
        yield watch
        watch.answers_keys()
        watch.quits()
    finally:
        engine.stop()
