"""Several sources as one: each in a thread of its own, so that one that is silent never holds up the others."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterator, Sequence

from sgmon.collect.probes.base import Clock
from sgmon.collect.source import TICK_S
from sgmon.model import Event, ProcsReading
from sgmon.remote.source import RemoteSource

QUEUE_SIZE = 4096
FULL_S = 0.5
#: for all sources together to end
END_S = 0.7


class MergedSource:
    """Events of all nodes, and ticks of its own."""

    replay = ""

    def __init__(self, nodes: Sequence[RemoteSource], clock: Clock) -> None:
        self.clock = clock
        self.epoch = clock.epoch
        self.nodes = tuple(nodes)
        self.dropped = 0  # events that found no place in the queue
        self._queue: queue.Queue[Event] = queue.Queue(QUEUE_SIZE)
        self._stopping = threading.Event()
        self._numbers = itertools.count(1)
        self._pids: dict[str, frozenset[int]] = {}  # node -> pids of its newest reading

    def __iter__(self) -> Iterator[Event]:
        threads = [threading.Thread(target=self._run, args=(one,), name="node", daemon=True) for one in self.nodes]
        for thread in threads:
            thread.start()
        ticked = float("-inf")
        while not self._stopping.is_set():
            now = self.clock.stamp()
            if now - ticked >= TICK_S:
                ticked = now
                yield Event(now, "tick")
            try:
                event = self._queue.get(timeout=max(0.01, TICK_S - (now - ticked)))
            except queue.Empty:
                continue
            if event.kind == "tick":
                continue
            if isinstance(event.reading, ProcsReading):
                self._pids[event.node] = frozenset(process.pid for process in event.reading.processes)
            yield event
        self._join(threads)

    def _run(self, source: RemoteSource) -> None:
        for event in source:
            if event.kind != "tick":
                self._put(event)
            if self._stopping.is_set():
                break
        source.stop()

    def _put(self, event: Event) -> None:
        """Text of a log waits for room; another reading is dropped and counted."""
        while not self._stopping.is_set():
            try:
                self._queue.put(event, timeout=FULL_S)
                return
            except queue.Full:
                if event.kind != "log":
                    self.dropped += 1
                    return

    def _join(self, threads: Sequence[threading.Thread]) -> None:
        """Give all of them a moment; who hangs is left behind."""
        until = self.clock.now() + END_S
        for thread in threads:
            thread.join(max(0.0, until - self.clock.now()))

    def stop(self) -> None:
        self._stopping.set()
        for node in self.nodes:
            node.stop()
        try:
            self._queue.put_nowait(Event(self.clock.stamp(), "tick"))
        except queue.Full:
            pass

    def request_stacks(
        self, pids: Sequence[int] | None, samples: int, native: bool, why: str, node: str = ""
    ) -> int | None:
        """Of all nodes, of the one that is named, or of those that have the pids."""
        number = next(self._numbers)
        asked = False
        for one in self.nodes:
            wanted = self._wanted(one.name, pids, node)
            if wanted is None or wanted:
                asked = one.request_stacks(wanted, samples, native, why, number) is not None or asked
        return number if asked else None

    def _wanted(self, name: str, pids: Sequence[int] | None, node: str) -> list[int] | None:
        """Of ``pids`` those to ask ``name`` for; None: all its ranks, []: none."""
        if node and name != node:
            return []
        if pids is None:
            return None
        return list(pids) if node else [pid for pid in pids if pid in self._pids.get(name, ())]

    def request_ras(self) -> None:
        for one in self.nodes:
            one.request_ras()

    def choose(self, pid: int, node: str = "") -> None:
        """Watch another server: on the node that is named, or that has this process."""
        for one in self.nodes:
            if one.name == node or (not node and pid in self._pids.get(one.name, ())):
                one.choose(pid)
