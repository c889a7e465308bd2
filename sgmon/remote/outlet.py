"""What a collector has to say, and how much of it goes through its pipe: the newest readings, the log in portions."""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable

from msgspec.structs import replace

from sgmon.model import Event, LogReading
from sgmon.remote.wire import EACH, EventLines, Packer

#: characters of the log in one portion, and how much may wait before no more of it is read
LOG_PORTION, LOG_WAITS = 64 << 10, 512 << 10
#: readings of which each one counts that may wait; the oldest go
KEPT_EACH = 256
#: a blocked pipe is looked at again after this
_BLOCKED_S = 0.25


class Outlet:
    """Takes events from any thread and never waits; ``run`` writes them. log_waits is set while the log must wait."""

    def __init__(self, out: int, log_waits: threading.Event, pause_s: float) -> None:
        self._out = out
        self._log_waits = log_waits
        self._pause_s = pause_s
        self._changed = threading.Condition()
        self._first: deque[bytes] = deque()  # lines of the collector itself: they do not wait
        self._each: deque[Event] = deque(maxlen=KEPT_EACH)
        self._newest: dict[str, Event] = {}
        self._log: deque[Event] = deque()
        self._log_size = 0
        self._urgent = False
        self._ended = False
        self._lines = EventLines()
        self._packer = Packer()

    def say(self, line: bytes) -> None:
        """A line of the collector itself, sent at once."""
        with self._changed:
            self._first.append(line)
            self._urgent = True
            self._changed.notify()

    def take(self, event: Event) -> None:
        """An event, sent with the next portion."""
        with self._changed:
            reading = event.reading
            if isinstance(reading, LogReading):
                self._log.append(event)
                self._log_size += len(reading.text)
                if self._log_size > LOG_WAITS:
                    self._log_waits.set()
            elif event.kind in EACH:
                self._each.append(event)
            else:
                self._newest[event.kind] = event
            self._urgent = self._urgent or event.kind in ("server", "stacks")
            self._changed.notify()

    def end(self) -> None:
        """Write what is there, and no more."""
        with self._changed:
            self._ended = self._urgent = True
            self._changed.notify()

    def run(self, wait: Callable[[float], object]) -> None:
        """Write until ``end``. ``wait`` pauses between two portions, so that they compress well."""
        while True:
            with self._changed:
                self._changed.wait_for(self._has_news)
                hurry = self._urgent
            if not hurry:
                with self._changed:
                    self._changed.wait_for(lambda: self._urgent, self._pause_s)
            lines, ended = self._portion()
            if lines and not self._write(self._packer.packed(lines)):
                return
            if ended:
                return
            if self._log:
                wait(_BLOCKED_S / 4)  # a long log leaves room for others

    def _has_news(self) -> bool:
        return bool(self._ended or self._first or self._each or self._newest or self._log)

    def _portion(self) -> tuple[list[bytes], bool]:
        with self._changed:
            lines = list(self._first)
            events = [*self._each, *self._newest.values(), *self._log_portion()]
            self._first.clear()
            self._each.clear()
            self._newest.clear()
            self._urgent = False
            ended = self._ended
            if self._log_size < LOG_WAITS // 2:
                self._log_waits.clear()
        events.sort(key=lambda event: event.t)
        return lines + [self._lines.line(event) for event in events], ended

    def _log_portion(self) -> list[Event]:
        """The next part of the log's text; a reading that is too long is cut at a line."""
        taken: list[Event] = []
        left = LOG_PORTION
        while self._log and left > 0:
            event = self._log.popleft()
            reading = event.reading
            assert isinstance(reading, LogReading)
            if len(reading.text) > left:
                head, tail = _cut(reading, left)
                self._log.appendleft(replace(event, reading=tail))
                event, reading, left = replace(event, reading=head), head, 0
            taken.append(event)
            left -= max(1, len(reading.text))
            self._log_size -= len(reading.text)
        return taken

    def _write(self, data: bytes) -> bool:
        """Write all of it, however long that takes: the watchdog ends a collector that nobody reads. False: nobody
        is there."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._out, view) :]
            except BlockingIOError:
                select.select([], [self._out], [], _BLOCKED_S)
            except OSError:
                return False
        return True


def _cut(reading: LogReading, most: int) -> tuple[LogReading, LogReading]:
    """Two readings of the same text, the first of at most ``most`` characters. Cut in the middle of a line where it
    has no end. An offset counts bytes: that of the second is as good as the text can be encoded."""
    at = reading.text.rfind("\n", 0, most) + 1 or most
    head, tail = reading.text[:at], reading.text[at:]
    offset = reading.offset + len(head.encode("utf-8", "replace"))
    return replace(reading, text=head), replace(reading, text=tail, offset=offset, change="", note="")
