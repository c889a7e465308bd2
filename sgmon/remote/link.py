"""A watch's half of the talk with one collector: requests out, lines in, and how the link is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from sgmon.collect.probes.base import Clock
from sgmon.json_text import as_json
from sgmon.model import KINDS, Event, LogReading, Reading, StacksReading
from sgmon.remote import refusals
from sgmon.remote.connection import Connection
from sgmon.remote.log_place import LogPlace
from sgmon.remote.offset import ClockOffset
from sgmon.remote.refusals import Refusal
from sgmon.remote.wire import BYE, HELLO, PONG
from sgmon.settings import Settings
from sgmon.text import clean
from sgmon.units import duration

#: the collector must have come up within this: a jump host, a slow disk and Python's start are in it
CONNECT_S = 30.0
PING_S = 2.0
#: pings at the beginning, all at once
FIRST_PINGS = 4
STALE_S = 6.0
#: after so long without a word the link is given up and made anew
LOST_S = 30.0
RATE_OVER_S = 10.0


class Link:
    """What one collector has said, and what it was asked. started: it collects."""

    def __init__(self, name: str, clock: Clock, connection: Connection, log_place: LogPlace) -> None:
        self.started = False
        self._name = name
        self._now = clock.now
        self._connection = connection
        self._log_place = log_place
        self._began_t = self._heard_t = self._now()
        self._offset = ClockOffset(clock.epoch)
        self._pings: dict[int, float] = {}  # number -> when it was sent
        self._ping_number = 0
        self._pinged_t = float("-inf")
        self._zero = 0.0  # as the collector was told
        self._numbers: list[int] = []  # of the requests for stacks, in the collector's order
        self._last: dict[str, Reading] = {}
        self._rates: deque[tuple[float, int]] = deque([(self._began_t, 0)])
        self._hello: dict[str, Any] = {}

    def ask(self, request: dict[str, Any]) -> None:
        """Send a request; one for stacks has the ``number`` that its dumps shall carry."""
        if request["ask"] == "stacks":
            self._numbers.append(request.pop("number"))
        self._connection.send(as_json(request))

    def take(self, lines: list[bytes]) -> Iterator[Event]:
        """The events of these lines. Raises MsgspecError, KeyError for what no collector says."""
        if lines:
            self._heard_t = self._now()
        for line in lines:
            head = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
            kind = msgspec.json.decode(head["k"], type=str)
            if kind in KINDS:
                yield self._event(kind, head)
            elif kind == HELLO:
                self._hello = msgspec.json.decode(line)
            elif kind == PONG:
                self._pong(msgspec.json.decode(line))
            elif kind == BYE:
                self._connection.open.discard(self._connection.stdout)

    def keep_up(self, settings: Settings) -> None:
        """Ask for a sign when it is time, and let a collector begin whose clock is known."""
        if not self._connection.is_up:
            return
        if self._now() - self._pinged_t >= PING_S:
            for _ in range(1 if self.started else FIRST_PINGS):
                self._ping()
        best = self._offset.best
        if not self.started and best is not None and not self._pings:
            self.started = True
            self._zero = best.zero
            self._log_place.begin()
            settings = replace(settings, log_resume=self._log_place.resume)
            self._connection.send(as_json({"ask": "start", "zero": best.zero, "settings": settings}))

    def overdue(self) -> Refusal | None:
        """Why the link is given up, if it is time for that."""
        now = self._now()
        if not self.started and now - self._began_t > CONNECT_S:
            words, said = f"no collector came up in {duration(CONNECT_S)}", self._connection.complaints
            known = refusals.of_output(self._name, said, None)
            return Refusal(f"{words}: {known.why}" if said.strip() else words, known.remedy)
        if self.started and now - self._heard_t > LOST_S:
            # without a number: for how long there is no word is counted on the screen
            return Refusal("its connection brought nothing more", "the link or the host hangs; it is tried again")
        return None

    def state(self, now: float) -> str:
        """ "" before the collector collects, then "live" or "stale"."""
        if not self.started:
            return ""
        return "stale" if now - self._heard_t > STALE_S else "live"

    def facts(self, now: float) -> dict[str, Any]:
        """Fields of a ``NodeReading``."""
        best = self._offset.best
        return {
            "since_t": round(self._heard_t, 3),
            "offset_s": None if best is None else round(best.wall_s, 4),
            "offset_error_s": None if best is None else round(best.took_s / 2, 4),
            "round_trip_s": None if best is None else round(best.took_s, 4),
            "hostname": clean(str(self._hello.get("host", "")), 80),
            "collector": clean(str(self._hello.get("sgmon", "")), 40),
            "python": clean(str(self._hello.get("python", "")), 40),
            "bytes_per_s": self._rate(now),
        }

    def _rate(self, now: float) -> float:
        """Bytes a second that come, over the last seconds."""
        self._rates.append((now, self._connection.received))
        while len(self._rates) > 2 and now - self._rates[1][0] > RATE_OVER_S:
            self._rates.popleft()
        (first_t, first), (last_t, last) = self._rates[0], self._rates[-1]
        return round((last - first) / max(0.001, last_t - first_t), 1)

    def _ping(self) -> None:
        self._pinged_t = self._now()
        self._ping_number += 1
        self._pings[self._ping_number] = self._pinged_t
        self._connection.send(b'{"ask":"ping","n":%d}' % self._ping_number)
        self._connection.write()

    def _pong(self, pong: dict[str, Any]) -> None:
        sent_t = self._pings.pop(pong["n"], None)
        if sent_t is not None:
            self._offset.add(sent_t, self._now(), pong["clock"], pong["wall"])

    def _event(self, kind: str, head: dict[str, msgspec.Raw]) -> Event:
        """The event in our time. Raises KeyError for "same" without anything before."""
        if "r" in head:
            reading: Reading = msgspec.json.decode(head["r"], type=KINDS[kind])
            self._last[kind] = reading
        else:
            reading = self._last[kind]
        if isinstance(reading, LogReading):
            reading = self._log_place.taken(reading)
        elif isinstance(reading, StacksReading):
            reading = self._numbered(reading)
        best = self._offset.best
        shift_s = 0.0 if best is None else self._zero - best.zero
        t = round(msgspec.json.decode(head["t"], type=float) + shift_s, 3)
        took_s = msgspec.json.decode(head["took"], type=float) if "took" in head else None
        return Event(t, kind, reading, took_s, self._name)

    def _numbered(self, reading: StacksReading) -> StacksReading:
        """With the number that we gave the request: a collector counts its own from 1."""
        number = self._numbers[reading.request - 1] if 0 < reading.request <= len(self._numbers) else reading.request
        dumps = tuple(replace(dump, request=number) for dump in reading.dumps)
        return replace(reading, request=number, dumps=dumps)
