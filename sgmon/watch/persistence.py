"""What a live watch remembers: the flight ring and its files, the finished start, the baseline.

The engine calls ``write`` and ``look``; both return at once. All work on files is done in daemon threads that can be
left behind (a home on a dead NFS server), and comes back as events that ``look`` hands to the engine.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from sgmon.collect.probes.base import NO_THREAD
from sgmon.history import from_snapshot
from sgmon.history.database import DatabaseError, StartDatabase
from sgmon.history.finished_start import StartKey
from sgmon.model import Baseline, Event, ProbeReading, Reading, Server, Snapshot
from sgmon.recording import ring_buffer
from sgmon.servers import registry

ALARMS = frozenset({"stalled", "stopped", "crashed"})
_CALM = frozenset({"progressing", "slow", "will-fail", "waiting-by-design", "ready", "ended", "waiting"})
#: after an alarm its file is written once more, with what came after
SETTLE_S = 10.0
#: after a crash is told otherwise than its file tells it, the file is written once more
CORRECTED_S = 1.0
#: a start that has ended is stored this much later: the last lines and readings are then in
ENDED_S = 2.0
#: how long the key of a start may stay incomplete (GPU, mount) before it is used as it is
KEY_S = 6.0
#: files that a watch writes by itself
AUTO_FILES = 6
#: starts of which is known that they are stored; one that is watched again after so many others is stored again
STORED = 256
CLOSE_S = 1.0


class Persistence:
    """Memory of one live watch. ``history`` None: no starts are stored and no baseline is looked up."""

    def __init__(self, epoch: float, history: StartDatabase | None = None, *, simulated: bool = False) -> None:
        self.ring = ring_buffer.RingBuffer(epoch)
        self.saved: tuple[str, ...] = ()  # the newest last; older files are gone from the disk, too
        self._history = history
        self._simulated = simulated  # also for a simulated server
        self._finished: queue.SimpleQueue[Reading | Path] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._last = Snapshot(epoch=epoch)
        self._episode: dict[str, Path | None] = {}  # state -> its file (None: not named yet)
        self._files = 0
        self._headline = ""  # as in the newest file
        self._again: tuple[float, str, dict[str, Path | None]] | None = None
        self._looked_key: StartKey | None = None
        self._stored: dict[tuple[int, int, str], None] = {}  # the oldest first
        self._ended_t: float | None = None

    def look(self, snapshot: Snapshot) -> list[Event]:
        """The snapshot after an event: begins what is due, and returns the results of earlier work."""
        if _replaced(self._last, snapshot):
            self._store(self._last, at_end=True)
            self._episode, self._again, self._ended_t, self._looked_key = {}, None, None, None
        self._last = snapshot
        if self._keeps(snapshot):
            self._watch_for_alarm(snapshot)
            self._watch_for_end(snapshot)
            self._find_baseline(snapshot)
        return self._results(snapshot.t)

    def save_flight(self, why: str = "asked") -> None:
        """Save the ring now. From any thread; its path comes back in ``saved``."""
        snapshot = self._last
        server = snapshot.server
        pid = server.pid if server is not None else None
        self._later("flight", lambda: self._write_flight(ring_buffer.new_path(_stamp(snapshot), why, pid), why))

    def close(self) -> list[Event]:
        """The watch ends: store what there is, and wait a second for it."""
        snapshot = self._last
        if self._keeps(snapshot):
            if self._again is not None:
                self._save_alarm(snapshot, *self._again[1:])
            self._store(snapshot, at_end=True)
        for thread in self._threads:
            thread.join(CLOSE_S / len(self._threads))
        return self._results(snapshot.t)

    def _keeps(self, snapshot: Snapshot) -> bool:
        server = snapshot.server
        return server is not None and (self._simulated or not server.simulated_gpus)

    # the flight

    def _watch_for_alarm(self, snapshot: Snapshot) -> None:
        state = snapshot.verdict.state
        if state in _CALM:
            self._episode = {}
        elif state in ALARMS and state not in self._episode and self._files < AUTO_FILES:
            self._files += 1
            self._episode[state] = None
            self._again = (snapshot.t + SETTLE_S, state, self._episode)
            self._save_alarm(snapshot, state, self._episode)
        corrected = state == "crashed" and state in self._episode and snapshot.verdict.headline != self._headline
        if corrected and self._again is None:  # evidence that came later: the file must hold it too
            self._again = (snapshot.t + CORRECTED_S, state, self._episode)
        if self._again is not None and snapshot.t >= self._again[0]:
            due, self._again = self._again, None
            self._save_alarm(snapshot, *due[1:])

    def _save_alarm(self, snapshot: Snapshot, state: str, episode: dict[str, Path | None]) -> None:
        """The first time under a new name, then over the same file."""
        self._headline = snapshot.verdict.headline
        stamp = _stamp(snapshot)
        pid = snapshot.server.pid if snapshot.server is not None else None

        def work() -> Path | Reading:
            path = episode.get(state) or ring_buffer.new_path(stamp, state, pid)
            episode[state] = path
            return self._write_flight(path, snapshot.verdict.headline)

        self._later("flight", work)

    def _write_flight(self, path: Path, note: str) -> Path:
        return self.ring.save(path, note)

    # the history

    def _watch_for_end(self, snapshot: Snapshot) -> None:
        if self._history is None or snapshot.verdict.state not in ("ready", "crashed"):
            self._ended_t = None
            return
        if self._ended_t is None:
            self._ended_t = snapshot.t
        if snapshot.t - self._ended_t >= ENDED_S:
            self._store(snapshot, at_end=False)

    def _store(self, snapshot: Snapshot, *, at_end: bool) -> None:
        """Add the start to the history, once for each way it has ended."""
        history, server = self._history, snapshot.server
        ended = from_snapshot.outcome_of(snapshot)
        if history is None or server is None or not ended or not self._keeps(snapshot):
            return
        if not at_end and ended not in ("ready", "crashed"):
            return
        key = (*server.key, ended)
        if key in self._stored or (*server.key, "ready") in self._stored:
            return
        self._stored[key] = None
        if len(self._stored) > STORED:
            del self._stored[next(iter(self._stored))]

        def work() -> Reading:
            run = from_snapshot.start_of(snapshot, ended, _own_numbers(snapshot))
            history.add(run)
            return ProbeReading("history")

        self._later("history", work)

    def _find_baseline(self, snapshot: Snapshot) -> None:
        """What is usual, looked up anew when the key becomes known better (a retitled server's arguments)."""
        history, key = self._history, from_snapshot.key_of(snapshot)
        if history is None or key is None or key == self._looked_key:
            return
        waited = snapshot.t - (snapshot.server_seen_t or 0.0) >= KEY_S
        gpu_known = bool(key.gpu or snapshot.gpu.unavailable)
        if not waited and (snapshot.start is None or not gpu_known):
            return
        self._looked_key = key
        self._later("baseline", lambda: history.baseline(key) or Baseline())

    # work in threads

    def _later(self, name: str, work: Callable[[], Path | Reading]) -> None:
        kind = "history" if name == "baseline" else name

        def run() -> None:
            try:
                self._finished.put(work())
            except DatabaseError as err:
                self._finished.put(ProbeReading(kind, error=err.words, remedy=err.remedy))
            except OSError as err:
                where = f" ({err.filename})" if err.filename else ""
                words = f"the {kind} cannot be written: {err.strerror}{where}"
                self._finished.put(ProbeReading(kind, error=words, remedy="make room there, or set XDG_STATE_HOME"))

        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=run, name=f"keep-{name}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # Python's word for EAGAIN
            self._finished.put(
                ProbeReading(kind, error=f"the {kind} is not written: {NO_THREAD[0]}", remedy=NO_THREAD[1])
            )
            return
        self._threads.append(thread)

    def _results(self, t: float) -> list[Event]:
        events: list[Event] = []
        while True:
            try:
                result = self._finished.get_nowait()
            except queue.Empty:
                return events
            if isinstance(result, Path):
                if str(result) not in self.saved:
                    self.saved = (*self.saved, str(result))[-ring_buffer.KEPT_FILES :]
                result = ProbeReading("flight")
            if isinstance(result, Baseline):
                events.append(Event(t, "baseline", result))
            elif isinstance(result, ProbeReading) and (result.error or self._was_wrong(result.name)):
                events.append(Event(t, "probe", result))

    def _was_wrong(self, name: str) -> bool:
        return any(status.name == name and status.error for status in self._last.probes)


def _own_numbers(snapshot: Snapshot) -> tuple[tuple[str, float], ...]:
    """The server's own numbers: of its metrics where they are switched on, else of its log."""
    server, port = snapshot.server, snapshot.port
    ready = snapshot.verdict.state == "ready"
    metric = registry.get(snapshot.family).health.startup_metric
    is_here = not snapshot.nodes  # another machine's port is not asked from here
    if ready and is_here and metric and server is not None and port is not None and _has_metrics(server):
        from sgmon.collect.probes.metrics import startup_times

        found = startup_times(port.asked or port.host, port.port, metric)
        if found:
            return found
    return from_snapshot.own_times(snapshot.log)


def _has_metrics(server: Server) -> bool:
    return dict(server.args.raw).get("enable_metrics", "False") in ("True", "true", "1")


def _replaced(old: Snapshot, new: Snapshot) -> bool:
    a, b = old.server, new.server
    return a is not None and b is not None and a.key != b.key


def _stamp(snapshot: Snapshot) -> str:
    return f"{datetime.fromtimestamp(snapshot.epoch + snapshot.t):%Y%m%d-%H%M%S}"
