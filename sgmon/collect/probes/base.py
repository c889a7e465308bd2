"""How every probe runs: in a thread of its own, never twice at once, its failures mapped to words.

This is one of the two places that look at a clock (the other is ``sgmon.collect.source``).
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from sgmon.model import Event, ProbeReading, Reading, Server
from sgmon.proc import files
from sgmon.settings import Settings

if TYPE_CHECKING:
    from typing import TypeAlias


class Clock:
    """Watch seconds: monotonic since ``epoch`` (wall clock at 0)."""

    def __init__(self, age_s: float = 0.0) -> None:
        """age_s: seconds since the watch began, where that was before, on another machine."""
        self.epoch = time.time() - age_s
        self._zero = time.monotonic() - age_s

    def now(self) -> float:
        return time.monotonic() - self._zero

    def stamp(self) -> float:
        """``now`` in whole milliseconds, as a recording keeps it: a replay computes the same rates."""
        return round(self.now(), 3)


class ProbeError(Exception):
    """An expected failure of a probe: words for the screen, and what would help."""

    def __init__(self, words: str, remedy: str = "") -> None:
        super().__init__(words)
        self.words = words
        self.remedy = remedy


NO_THREAD = ("sgmon can start no thread", "raise its limit of processes: ulimit -u, or the container's pids limit")
_DEFECT = "this is a defect of sgmon: please report it"


def words_of(err: Exception) -> tuple[str, str]:
    """What an unexpected error says, and what would help: one of sgmon's own limits, or a defect."""
    if isinstance(err, OSError) and files.is_own_limit(err):
        lacks = "memory" if err.errno == errno.ENOMEM else "file descriptors"
        remedy = "free memory" if err.errno == errno.ENOMEM else "raise its limit: ulimit -n, then start sgmon again"
        return f"sgmon has no {lacks} left ({err.strerror})", remedy
    if isinstance(err, MemoryError):
        return "sgmon has no memory left", "free memory, or raise the limit of its cgroup"
    if isinstance(err, RuntimeError) and "start new thread" in str(err):
        return NO_THREAD
    return f"{type(err).__name__}: {err}", _DEFECT


class Watched(Struct):
    """What probes know of the server. ``server`` is written by the server probe alone; reads of one attribute are
    atomic. ``settings`` stay as they were given. log_waits: no more text of the log is read while it is set.
    one_look: each probe is read once, and the watch ends. calm: the server is ready and nothing is wrong
    (``sgmon.collect.calm``)."""

    settings: Settings
    clock: Clock
    server: Server | None = None
    log_waits: threading.Event | None = None
    one_look: bool = False
    calm: bool = False


class Probe(Protocol):
    """One kind of fact. ``read`` may block up to ``deadline_s``; past that the view shows the probe as hung.

    ``kind`` is the event kind, a key of ``sgmon.model.KINDS``. ``read`` returns a reading, several,
    or None for "nothing new"; an expected failure is raised as ``ProbeError``.
    """

    name: str
    kind: str
    interval_s: float
    deadline_s: float

    def read(self) -> Reading | Iterable[Reading] | None: ...

    def close(self) -> None: ...


Emit: TypeAlias = "Callable[[Event], None]"


class ProbeThread:
    """Runs one probe in a daemon thread. ``in_flight_since_t`` lets the source report a call that hangs."""

    def __init__(self, probe: Probe, clock: Clock, emit: Emit, stop: threading.Event) -> None:
        self.probe = probe
        self.in_flight_since_t: float | None = None
        self._clock = clock
        self._emit = emit
        self._stop = stop
        self._wake = threading.Event()
        self._failing = False
        self._thread = threading.Thread(target=self._loop, name=f"probe-{probe.name}", daemon=True)

    def start(self) -> None:
        self._wake.clear()  # what it was woken for is seen by its first read
        self._thread.start()

    def wake(self) -> None:
        """Read now instead of at the end of the interval."""
        self._wake.set()

    def hung(self, now: float) -> ProbeReading | None:
        """The "it has been in one call for too long" reading, if that is so."""
        since = self.in_flight_since_t
        if since is None or now - since < self.probe.deadline_s:
            return None
        return ProbeReading(name=self.probe.name, in_flight_since_t=since)

    def _loop(self) -> None:
        while not self._stop.is_set():
            busy = self._once()
            if self._stop.is_set():
                break
            self._wake.wait(0.0 if busy else self.probe.interval_s)
            self._wake.clear()
        self.probe.close()

    def _once(self) -> bool:
        """One read. True when the probe asks to be read again at once (attribute ``busy``)."""
        start = self._clock.now()
        self.in_flight_since_t = start
        try:
            result = self.probe.read()
            readings = () if result is None else result if isinstance(result, (tuple, list)) else (result,)
        except ProbeError as err:
            self._fail(err.words, err.remedy)
            return False
        except Exception as err:  # noqa: BLE001 - the border: whatever a probe does, the others go on
            self._fail(*words_of(err))
            return False
        finally:
            self.in_flight_since_t = None
        took_s = round(self._clock.now() - start, 4)
        now = self._clock.stamp()
        if self._failing:
            self._failing = False
            self._emit(Event(now, "probe", ProbeReading(self.probe.name)))
        for reading in readings:
            self._emit(Event(now, self.probe.kind, reading, took_s))
        return bool(getattr(self.probe, "busy", False))

    def _fail(self, words: str, remedy: str) -> None:
        self._failing = True
        self._emit(Event(self._clock.stamp(), "probe", ProbeReading(self.probe.name, error=words, remedy=remedy)))
