"""Text that comes through a pipe: what has come is read, in pieces, and never waited for."""

from __future__ import annotations

import os
import re
import select
from datetime import datetime

from sgmon.collect.logs.opening import new_decoder
from sgmon.collect.logs.pace import POLL_S, Pace
from sgmon.collect.probes.base import Clock
from sgmon.model import LogReading
from sgmon.patterns import regex

ROUND_BYTES = 256 << 10
IDLE_S = 0.2
#: times that an envelope gives: journald's microseconds, RFC 3339 of docker and the CRI
_MICROSECONDS = regex(r'"__REALTIME_TIMESTAMP"\s*:\s*"(\d{16})"')
_RFC3339 = regex(r'(?:^|"time":")(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)(?=[" ])', re.MULTILINE)
_TIMES_IN = 64 << 10  # characters at the end of a piece in which the newest time is looked for


class Stream:
    """Makes readings of bytes in their order. The text of before the watch is as old as its envelope says."""

    def __init__(self, path: str, kind: str, clock: Clock) -> None:
        self._path = path
        self._kind = kind
        self._clock = clock
        self._decoder = new_decoder()
        self._offset = 0
        self._caught_up = False

    def reading(self, data: bytes, change: str = "", note: str = "") -> LogReading:
        """The next piece. change "truncated": the text begins anew with it; "ended": it ends with it."""
        if change == "truncated":
            self._decoder, self._offset = new_decoder(), 0
        start = self._offset - len(self._decoder.getstate()[0])
        text = self._decoder.decode(data, change == "ended")
        self._offset += len(data)
        epoch = None if self._caught_up or not text else newest_epoch(text[-_TIMES_IN:])
        return LogReading(
            path=self._path,
            offset=start,
            text=text,
            size=self._offset,
            kind=self._kind,
            change=change,
            age_s=self._age_s(epoch),
            undated=epoch is None and bool(text) and not self._caught_up,
            note=note,
        )

    @property
    def caught_up(self) -> bool:
        return self._caught_up

    def catch_up(self) -> None:
        """Nothing more is there now: what comes from here on is new."""
        self._caught_up = self._caught_up or self._offset > 0

    def _age_s(self, epoch: float | None) -> float | None:
        """Seconds since the newest line of before the watch; None: its envelope gives no time, or the line is new."""
        age = None if epoch is None else self._clock.epoch + self._clock.now() - epoch
        return round(age, 1) if age is not None and age >= 1.0 else None


class Gathered:
    """What comes through a descriptor: read as soon as it comes, for a writer that waits for a full pipe would be
    slowed, and passed on at the pace at which a file is read."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._waiting = b""
        self._size = 0
        self.waits = False  # there is something to pass on later

    def take(self, fd: int, now: float, gathers: bool) -> bytes | None:
        """What is to be passed on now; None: nothing; b"": the end, after which nothing more is asked for. gathers:
        what was there at first has been read."""
        data = available(fd)
        self._waiting += data or b""
        self._size += len(data or b"")
        self.waits = False
        if data == b"" or not self._waiting:
            ended, self._waiting = self._waiting, b""
            return ended if data == b"" else None
        if gathers and len(self._waiting) < ROUND_BYTES and self._pace.waits(now, self._size):
            self.waits = True
            return None
        passed, self._waiting = self._waiting, b""
        return passed


class InputLog:
    """The log as it comes in through one descriptor (``sgmon --log -``)."""

    def __init__(self, fd: int, clock: Clock) -> None:
        self._fd = fd
        self._stream = Stream("-", "stdin", clock)
        self._clock = clock
        self._gathered = Gathered()
        self._begun = self._ended = False
        self.interval_s = IDLE_S
        self.busy = False

    def read(self) -> LogReading | None:
        self.busy = False
        if self._ended:
            return None
        self.interval_s = IDLE_S
        data = self._gathered.take(self._fd, self._clock.now(), self._stream.caught_up)
        if self._gathered.waits:
            self.interval_s = POLL_S
            return None
        if data is None:
            self._stream.catch_up()
            return None if self._begun else self._first()
        self._begun = True
        self.busy = len(data) > 0
        if not data:
            self._ended = True
            return self._stream.reading(b"", "ended", "the input has ended: nothing more will come")
        return self._stream.reading(data)

    def close(self) -> None:
        """The descriptor stays open until sgmon ends, and its writer with it."""

    def _first(self) -> LogReading:
        """That the log is followed is said before it says anything."""
        self._begun = True
        return self._stream.reading(b"")


def available(fd: int) -> bytes | None:
    """What can be read now, at most ``ROUND_BYTES``; None: nothing yet; b"": the end."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if not poll.poll(0):
        return None
    parts: list[bytes] = []
    have = 0
    while have < ROUND_BYTES and poll.poll(0):  # a pipe gives at most what it holds, mostly 64 KB
        try:
            data = os.read(fd, ROUND_BYTES - have)
        except BlockingIOError:
            break
        except OSError:  # EIO: the terminal behind it is gone
            data = b""
        if not data:
            break
        parts.append(data)
        have += len(data)
    return b"".join(parts)


def newest_epoch(text: str) -> float | None:
    """The last time that an envelope in the text gives, as an epoch; None without any."""
    micro = _MICROSECONDS.findall(text)
    if micro:
        return int(micro[-1]) / 1e6
    times = _RFC3339.findall(text)
    if not times:
        return None
    try:
        return datetime.fromisoformat(times[-1][0] + times[-1][1].replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
