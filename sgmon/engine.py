"""The thread that ties source, recording, store and subscribers together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from sgmon.log.index import LogIndex
from sgmon.model import Event, LogReading, Snapshot
from sgmon.record import Recorder
from sgmon.source import Source
from sgmon.stacks.causes import Cause
from sgmon.store import Store

PUBLISH_S = 0.25
JOIN_S = 1.0
#: states at which evidence is taken once by itself
_ALARMING = frozenset({"suspect", "stalled"})

Subscriber = Callable[[Snapshot], None]


class Engine:
    """Runs a source through a store and publishes snapshots, at most four a second.

    Two calls go up from the view: ``request_stacks`` and ``stop``. Subscribers are called in the
    engine's thread and must return at once (the screen only posts a message).
    """

    def __init__(
        self,
        source: Source,
        *,
        recorder: Recorder | None = None,
        auto_evidence: bool = True,
        book: Sequence[Cause] | None = None,
    ) -> None:
        self.source = source
        self.store = Store(source.epoch, replay=source.replay, book=book)
        self.snapshot: Snapshot = self.store.snapshot
        self.log_text = LogIndex(live=not source.replay)
        self.failure = ""
        self.ended = threading.Event()
        self._recorder = recorder
        self._auto_evidence = auto_evidence and not source.replay
        self._subscribers: list[Subscriber] = []
        self._published_t = -PUBLISH_S
        self._evidence_for: tuple[int, int] | None = None
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def subscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.append(subscriber)

    def request_stacks(
        self,
        pids: Sequence[int] | None = None,
        samples: int = 1,
        native: bool = False,
        why: str = "",
    ) -> None:
        """Ask for stacks of these pids (None: every rank). Returns at once; dumps arrive in snapshots."""
        self.source.request_stacks(pids, samples, native, why)
        if pids is None:
            self.source.request_ras()

    def choose(self, pid: int) -> None:
        """Watch another server from now on."""
        self.source.choose(pid)

    def stop(self) -> None:
        """Stop the source and wait at most a second for the thread; then leave it behind."""
        self.source.stop()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(JOIN_S)
        if self._recorder is not None and not self._thread.is_alive():
            self._recorder.close()

    def run_here(self) -> None:
        """The same loop in the caller's thread (commands without a screen)."""
        self._run()

    def _run(self) -> None:
        try:
            for event in self.source:
                self._take(event)
        except Exception as err:
            self.failure = f"{type(err).__name__}: {err}"
            raise
        finally:
            self._publish(force=True)
            self.ended.set()

    def _take(self, event: Event) -> None:
        if self._recorder is not None:
            self._recorder.write(event)
        if isinstance(event.reading, LogReading):
            self.log_text.follow(event.reading)
        self.snapshot = self.store.step(event)
        self._take_evidence()
        self._publish(force=event.kind in ("stacks", "server"))

    def _take_evidence(self) -> None:
        """At the first suspicion of a server: three stack samples of every rank and NCCL's view, once."""
        server = self.snapshot.server
        if not self._auto_evidence or server is None or self.snapshot.verdict.state not in _ALARMING:
            return
        key = (server.pid, server.start_ticks)
        if self._evidence_for != key:
            self._evidence_for = key
            self.request_stacks(None, samples=3, why=f"auto: {self.snapshot.verdict.state}")

    def _publish(self, force: bool = False) -> None:
        if not force and self.snapshot.t - self._published_t < PUBLISH_S * 0.9:
            return
        self._published_t = self.snapshot.t
        dropped = getattr(self.source, "dropped", 0)
        snapshot = self.snapshot if not dropped else replace(self.snapshot, dropped=dropped)
        for subscriber in self._subscribers:
            subscriber(snapshot)
