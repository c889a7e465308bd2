"""Events of one far machine as a source: it connects, connects again, and says how the link is."""

from __future__ import annotations

import os
import selectors
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from sgmon.collect.probes.base import Clock
from sgmon.collect.source import TICK_S
from sgmon.model import Event, NodeReading
from sgmon.remote import refusals
from sgmon.remote.connection import ENDS_S, Connection
from sgmon.remote.hosts import Reach
from sgmon.remote.link import Link
from sgmon.remote.log_place import LogPlace
from sgmon.remote.refusals import Refusal
from sgmon.settings import Settings
from sgmon.text import clean

BACK_OFF_S = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
#: how often the numbers of a link that is well are told
TOLD_EVERY_S = 5.0
#: a log that was there before is read from its last bytes on
LOG_LIMIT_BYTES = 4 << 20


class RemoteSource:
    """One far machine. Iterated by one thread, which may be left behind; asked and stopped by any."""

    replay = ""

    def __init__(self, reach: Reach, settings: Settings, clock: Clock) -> None:
        self.name = reach.name
        self.epoch = clock.epoch
        self.clock = clock
        self.reading = NodeReading(reach.name, "connecting")
        self._reach = reach
        limit = min(settings.log_limit_bytes, LOG_LIMIT_BYTES)
        self._settings = replace(settings, hosts=(), log_limit_bytes=limit)
        self._stopping = threading.Event()
        self._woken, self._wake = os.pipe()
        for fd in (self._woken, self._wake):
            os.set_blocking(fd, False)
        self._requests: deque[dict[str, Any]] = deque()
        self._log_place = LogPlace()
        self._failures = 0
        self._ticked_t = float("-inf")
        self._told_t = float("-inf")

    # asked by any thread

    def stop(self) -> None:
        self._stopping.set()
        self._rouse()

    def request_stacks(
        self, pids: Sequence[int] | None, samples: int, native: bool, why: str, number: int = 0
    ) -> int | None:
        """``number``: what the dumps shall carry. None: the machine is not reached now."""
        if self.reading.state not in ("live", "stale"):
            return None
        wanted = None if pids is None else list(pids)
        self._ask(ask="stacks", pids=wanted, samples=samples, native=native, why=why, number=number)
        return number

    def request_ras(self) -> None:
        self._ask(ask="ras")

    def choose(self, pid: int) -> None:
        self._settings = replace(self._settings, pid=pid)
        self._ask(ask="choose", pid=pid)

    def _ask(self, **request: Any) -> None:
        self._requests.append(request)
        self._rouse()

    def _rouse(self) -> None:
        try:
            os.write(self._wake, b".")
        except OSError:  # full: it will look in any case
            pass

    # the loop of one thread

    def __iter__(self) -> Iterator[Event]:
        yield self._told()
        while not self._stopping.is_set():
            yield from self._reached()
            if self._stopping.is_set() or self.reading.state == "failed":
                break
            yield from self._pause(BACK_OFF_S[min(self._failures, len(BACK_OFF_S) - 1)])
            self._failures += 1
        while not self._stopping.is_set():
            yield from self._pause(TICK_S)

    def _pause(self, seconds: float) -> Iterator[Event]:
        until = self.clock.now() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._stopping.is_set() and (left := until - self.clock.now()) > 0:
                yield from self._tick()
                selector.select(min(left, TICK_S))
                self._emptied()

    def _tick(self) -> Iterator[Event]:
        now = self.clock.stamp()
        if now - self._ticked_t >= TICK_S * 0.8:
            self._ticked_t = now
            yield Event(now, "tick")

    def _emptied(self) -> None:
        try:
            os.read(self._woken, 4096)
        except OSError:
            pass

    def _reached(self) -> Iterator[Event]:
        """One connection, from its start to its end."""
        try:
            connection = Connection(self._reach.argv)
        except OSError as err:
            why = f"{self._reach.argv[0]} cannot be started: {err.strerror}"
            yield self._now_is("failed", why, f"install {self._reach.argv[0]}, or give another way with --via")
            return
        link = Link(self.name, self.clock, connection, self._log_place)
        try:
            refusal = yield from self._serve(connection, link)
        finally:
            hurry = self._stopping.is_set() and self.reading.state != "live"
            code = connection.end(0.0 if hurry else ENDS_S)
        if self._stopping.is_set():
            return
        if refusal is None:
            refusal = refusals.of_output(self.name, connection.complaints, code)
        if link.started:
            self._failures = 0
        if refusal.final and not link.started:
            yield self._now_is("failed", refusal.why, refusal.remedy)
        else:
            known = link.started or self.reading.state == "lost"
            yield self._now_is("lost" if known else "connecting", refusal.why, refusal.remedy)

    def _serve(self, connection: Connection, link: Link) -> Generator[Event, None, Refusal | None]:
        """Until the command ends (returns None), or why it is given up."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            for fd in (connection.stdout, connection.stderr):
                selector.register(fd, selectors.EVENT_READ)
            writing = False
            while not self._stopping.is_set():
                if connection.wants_to_write != writing:
                    writing = not writing
                    if writing:
                        selector.register(connection.stdin, selectors.EVENT_WRITE)
                    else:
                        selector.unregister(connection.stdin)
                has_ended = connection.code() is not None
                ready = selector.select(0 if has_ended else TICK_S)
                for key, _ in ready:
                    if key.fd == self._woken:
                        self._emptied()
                    elif key.fd == connection.stdin:
                        connection.write()
                    elif key.fd == connection.stderr:
                        connection.read_complaints()
                    else:
                        try:
                            yield from link.take(connection.read())
                        except (ValueError, KeyError, msgspec.MsgspecError) as err:
                            return Refusal(
                                f"what comes back is no collector's: {clean(str(err), 100)}", "it is tried again"
                            )
                    if key.fd != self._woken and key.fd not in connection.open:
                        selector.unregister(key.fd)
                        writing = writing and key.fd != connection.stdin
                refusal = link.overdue()
                if refusal is not None:
                    return refusal
                yield from self._look(link)
                if connection.stdout not in connection.open or (has_ended and not ready):
                    return None
            connection.send(b'{"ask":"stop"}')
            connection.write()
        return None

    def _look(self, link: Link) -> Iterator[Event]:
        """What is to be asked, and to be told of the link."""
        link.keep_up(self._settings)
        while self._requests and link.started:
            link.ask(self._requests.popleft())
        now = self.clock.now()
        state = link.state(now)
        if state and (state != self.reading.state or now - self._told_t >= TOLD_EVERY_S):
            why = "" if state == "live" else "the link or the host hangs"
            yield self._now_is(state, why, "", **link.facts(now))
        yield from self._tick()

    def _now_is(self, state: str, why: str = "", remedy: str = "", **more: Any) -> Event:
        self.reading = replace(self.reading, state=state, why=why, remedy=remedy, **more)
        return self._told()

    def _told(self) -> Event:
        self._told_t = self.clock.stamp()
        return Event(self._told_t, "node", self.reading, node=self.name)
