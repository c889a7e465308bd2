"""The thread that ties source, recording, store and subscribers together."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sgmon.analyse.log.index import LogIndex
from sgmon.analyse.store import Store
from sgmon.collect.source import Source
from sgmon.model import Event, LogReading, NextStep, ProbeReading, ProbeStatus, Snapshot, Verdict
from sgmon.recording.codec import Encoder
from sgmon.recording.replay import REWIND, SHOW, ReplaySource
from sgmon.watch.auto_stacks import ALARMING, AutoStacks

if TYPE_CHECKING:
    from sgmon.analyse.log.nodes_index import NodesLogIndex
    from sgmon.analyse.nodes.store import NodesStore
    from sgmon.analyse.stacks.causes import Cause
    from sgmon.recording.writer import Recorder
    from sgmon.watch.persistence import Persistence

PUBLISH_S = 0.25
#: readings that come again and again: those of a server that is ready are shown at the next tick, all together
STEADY = frozenset({"procs", "gpu", "port", "server", "preflight"})
JOIN_S = 1.0
#: in a replay, "the change before" is one that is at least this far back
REACH_S = 1.0
#: of a recording that goes into a report; an hour of a watch has some MB
MOST_BYTES = 256 << 20

Subscriber = Callable[[Snapshot], None]


class Engine:
    """Runs a source through a store and publishes snapshots, at most one each ``publish_s`` (four a second).

    The view calls ``request_stacks``, ``choose``, ``save_flight`` and ``stop``. Subscribers are called in the
    engine's thread and must return at once (the screen only posts a message).
    """

    def __init__(
        self,
        source: Source,
        *,
        recorder: Recorder | None = None,
        persistence: Persistence | None = None,
        auto_evidence: bool = True,
        publish_s: float = PUBLISH_S,
        user_causes: Sequence[Cause] = (),
    ) -> None:
        self.source = source
        self.store: Store | NodesStore = Store(source.epoch, replay=source.replay, user_causes=user_causes)
        self.snapshot: Snapshot = self.store.snapshot
        self.log_text: LogIndex = LogIndex(live=not source.replay, epoch=source.epoch)
        self._logs: NodesLogIndex | None = None  # ``log_text``, where there are several nodes
        self.failure = ""
        self.ended = threading.Event()
        self._recorder = recorder
        self._encoder = Encoder()
        self._trouble = ProbeReading("recording")
        self._persistence = persistence
        self._user_causes = user_causes
        self._auto_stacks = AutoStacks() if auto_evidence and not source.replay else None
        self._subscribers: list[Subscriber] = []
        self._publish_s = publish_s
        self._text_t = -publish_s  # when the newest text of the log was published
        self._published_t = -publish_s if source.replay else 0.0  # the first tick of a watch knows nothing yet
        self._published = self.snapshot.verdict
        self._followed_t = -1.0  # when the view was last told of the log's size
        self._news = False  # something was read since
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
    ) -> int | None:
        """Ask for stacks of these pids (None: every rank). Returns at once; dumps arrive in snapshots.

        The number of the request, which its dumps carry; None: this source cannot be asked.
        """
        number = self.source.request_stacks(pids, samples, native, why)
        if pids is None:
            self.source.request_ras()
        return number

    def choose(self, pid: int) -> None:
        """Watch another server from now on."""
        self.source.choose(pid)

    @property
    def replay(self) -> ReplaySource | None:
        """The controls of a recording; None when live."""
        return self.source if isinstance(self.source, ReplaySource) else None

    def to_previous_change(self) -> None:
        """In a replay: back to where the verdict last became another one than it is."""
        replay, snapshot = self.replay, self.snapshot
        if replay is not None:
            earlier = [change.t for change in snapshot.verdicts if change.t < snapshot.t - REACH_S]
            replay.seek(earlier[-1] if earlier else 0.0)

    def save_flight(self) -> bool:
        """Save the last minutes as a recording; its path comes in ``Snapshot.saved``. False: nothing is kept here."""
        if self._persistence is None:
            return False
        self._persistence.save_flight()
        return True

    def recording(self, note: str) -> bytes | None:
        """The recording of this watch so far, or the one that is replayed. Raises OSError."""
        replay = self.replay
        if replay is not None:
            if replay.path.stat().st_size > MOST_BYTES:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(replay.path))
            return replay.path.read_bytes()
        return b"".join(self._persistence.ring.parts(note)) if self._persistence is not None else None

    def stop(self) -> None:
        """Stop the source and wait at most a second for the thread; then leave it behind."""
        self.source.stop()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(JOIN_S)
        if not self._thread.is_alive():
            self._close()

    def run_here(self) -> None:
        """The same loop in the caller's thread (commands without a screen)."""
        self._run()

    def _run(self) -> None:
        try:
            for event in self.source:
                self._take(event)
        except Exception as err:
            self.failure = f"{type(err).__name__}: {err}"
            self.snapshot = _failed(self.snapshot, self.failure)
            raise
        finally:
            self._publish(force=True)
            self.ended.set()

    def _take(self, event: Event) -> None:
        if event.kind in (REWIND, SHOW):
            self._control(event)
            return
        had = bool(self.snapshot.ranks), bool(self.snapshot.log.lines)
        had_server = self.snapshot.server is not None
        self._fold(event)
        if self._persistence is not None:
            for result in self._persistence.look(self.snapshot):
                self._fold(result)
            if self._persistence.saved != self.snapshot.saved:
                self.snapshot = self.store.note(saved=self._persistence.saved)
        if event.kind == "tick" and self._recorder is not None and self._recorder.trouble() != self._trouble:
            self._trouble = self._recorder.trouble()
            self._fold(Event(event.t, "probe", self._trouble))
        self._ask_auto_stacks()
        # without a pace each reading is shown: a look may wait for this one
        is_steady = self._publish_s > 0 and event.kind in STEADY and self.snapshot.verdict.state == "ready"
        self._news = self._news or not (is_steady or event.kind == "tick" or _is_part(event))
        has = bool(self.snapshot.ranks), bool(self.snapshot.log.lines)
        if has == had and is_steady and not self._news and self.snapshot.verdict == self._published:
            return
        # a first server is shown with its ranks, or by the next tick where its processes do not answer
        awaits_ranks = not had_server and self.snapshot.server is not None and not self.source.replay
        asked_for = event.kind == "stacks" or (event.kind == "server" and not awaits_ranks)
        self._publish(force=has > had or asked_for or self._is_new_text(event))

    def _fold(self, event: Event) -> None:
        keeping = self._recorder is not None or self._persistence is not None
        encoded = self._encoder.encode(event) if keeping else None
        if encoded is not None and self._recorder is not None:
            self._recorder.take(encoded)
        if encoded is not None and self._persistence is not None:
            self._persistence.ring.keep(encoded)
        if event.node and isinstance(self.store, Store):
            self._take_nodes(self.store)
        before = self.snapshot.verdicts
        self.snapshot = self.store.step(event)
        self._follow_log(event)
        if self.replay is not None and self.snapshot.verdicts[-1:] != before[-1:]:
            self.replay.change_seen()

    def _take_nodes(self, before: Store) -> None:
        """The first event that names a node has come: from now on there is a store for each."""
        from sgmon.analyse.log.nodes_index import NodesLogIndex  # a single machine never needs them
        from sgmon.analyse.nodes.store import NodesStore

        self.store = NodesStore(
            self.source.epoch, replay=self.source.replay, user_causes=self._user_causes, first=before
        )
        if self._logs is None:
            self.log_text.close()
            self.log_text = self._logs = NodesLogIndex(epoch=self.source.epoch)

    def _follow_log(self, event: Event) -> None:
        """Keep the text of the log; of several nodes in the order of time."""
        reading, logs, store = event.reading, self._logs, self.store
        if logs is None or isinstance(store, Store):
            if isinstance(reading, LogReading):
                more = reading.is_part and 0 <= event.t - self._followed_t < 1.0
                self._followed_t = self._followed_t if more else event.t
                self.log_text.follow(reading, more=more)
        elif isinstance(reading, LogReading):
            own = store.snapshot_of(event.node)
            logs.follow_node(reading, event.node, event.t, own.epoch + own.log_zone_s)
        elif event.kind == "tick" and not event.node:
            logs.settle(event.t)

    def _control(self, event: Event) -> None:
        """Of a replay: from the beginning again, or show where it is."""
        if event.kind == REWIND:
            self.store = Store(self.source.epoch, replay=self.source.replay, user_causes=self._user_causes)
            self.snapshot = self.store.snapshot
            if self._logs is not None:
                self._logs.start_anew()
            else:
                self.log_text.follow(LogReading(path=self.log_text.path, change="truncated"))
        else:
            self._publish(force=True)

    def _close(self) -> None:
        """What is left to write at the end."""
        if self._persistence is not None:
            for result in self._persistence.close():
                self._fold(result)
            self.snapshot = self.store.note(saved=self._persistence.saved)
        if self._recorder is not None:
            self._recorder.close()

    def _ask_auto_stacks(self) -> None:
        """Three stack samples of every rank when they are due; at a suspicion NCCL's view with them."""
        why = self._auto_stacks.due(self.snapshot) if self._auto_stacks is not None else ""
        if self.snapshot.verdict.state in ALARMING and why:
            self.request_stacks(None, samples=3, why=why)
        elif why:
            self.source.request_stacks(None, 1, False, why)

    def _is_new_text(self, event: Event) -> bool:
        """Whether text of the log came that need not wait for its turn: the probe has gathered it."""
        if event.kind != "log" or _is_part(event) or 0 <= event.t - self._text_t < self._publish_s * 0.9:
            return False
        self._text_t = event.t
        return True

    def _publish(self, force: bool = False) -> None:
        """At most each ``publish_s``; a quarter as often where nothing but the time has changed."""
        replay = self.replay
        since = self.snapshot.t - self._published_t
        news = self._news or self.snapshot.verdict != self._published
        pause_s = self._publish_s * (0.9 if news else 3.9)
        if (replay is not None and replay.skipping) or (not force and 0 <= since < pause_s):
            return
        self._published_t, self._published, self._news = self.snapshot.t, self.snapshot.verdict, False
        if replay is not None:
            self.snapshot = self.store.note(replay=replay.words())
        for subscriber in self._subscribers:
            subscriber(self.snapshot)


def _is_part(event: Event) -> bool:
    """Whether it is text of the log of which more follows at once."""
    return isinstance(event.reading, LogReading) and event.reading.is_part


def _failed(last: Snapshot, words: str) -> Snapshot:
    """The last snapshot of an engine that goes no further: what it shows is old, and what is so now is unknown."""
    step = NextStep("Quit and start sgmon again; please report this defect of sgmon")
    words_now = f"sgmon has failed and watches no more: {words}"
    verdict = Verdict("unknown", words_now, since_t=last.t, rule="engine-failed", next=(step,))
    status = ProbeStatus("engine", error=words)
    return replace(last, verdict=verdict, probes=(*last.probes, status))
