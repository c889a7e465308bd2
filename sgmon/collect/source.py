"""Events from live probes. The other source is a recording (``sgmon.recording.replay``); both iterate over events."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from sgmon.collect.calm import Calm
from sgmon.collect.probes.base import NO_THREAD, Clock, Probe, ProbeThread, Watched
from sgmon.collect.probes.server import ServerProbe
from sgmon.model import Event, ProbeReading, Process, ProcsReading, ServerReading
from sgmon.settings import Settings
from sgmon.units import plural

TICK_S = 0.25
QUEUE_SIZE = 512
#: how long a probe waits for room in the queue before its event is dropped
FULL_S = 0.5
DROPPED_SHOWN_S = 60.0
#: the processes are read when the server is known, or after this: the first look is then at the right ones
FIRST_LOOK_S = 0.3
#: the others when the processes have been read as well, or after this; then they wait until the ranks are painted
FIRST_PROCS_S, PAINTED_S = 1.0, 0.1
#: the probes that answer requests are imported and started after this, or with the first request
ON_REQUEST_S = 1.0


class Source(Protocol):
    """An iterator of events that can be stopped and asked for stacks."""

    epoch: float
    replay: str

    def __iter__(self) -> Iterator[Event]: ...

    def stop(self) -> None: ...

    def request_stacks(self, pids: Sequence[int] | None, samples: int, native: bool, why: str) -> int | None: ...

    def request_ras(self) -> None: ...

    def choose(self, pid: int) -> None: ...


class LiveSource:
    """Runs the probes, each in its own thread, and yields what they say; a tick at least each 250 ms, less often
    where readings are asked for less often than once a second, and once an interval while all is calm."""

    replay = ""

    def __init__(
        self,
        settings: Settings,
        probes: Callable[[Watched, LiveSource], list[Probe]] | None = None,
        found: ServerReading | None = None,
        clock: Clock | None = None,
        one_look: bool = False,
    ) -> None:
        """``found``: the server, where it was looked for already. clock: of a watch that began before. one_look: it
        ends when each probe was read once."""
        self.clock = clock or Clock()
        self.epoch = self.clock.epoch
        self.watched = Watched(settings, self.clock, one_look=one_look)
        self.processes: tuple[Process, ...] = ()
        self.dropped = 0  # readings that found no place in the queue
        self._dropping = threading.Lock()  # any probe thread may count
        self._dropped_reported = 0
        self._dropped_t: float | None = None
        self._queue: queue.Queue[Event] = queue.Queue(QUEUE_SIZE)
        self._stop = threading.Event()
        self._interval_s = max(1.0, settings.interval_s)
        self._tick_s = TICK_S * self._interval_s
        self._calm = Calm()
        self._log_came = False  # since the last tick, with which the verdict sees it
        self._threads = self._prepared(probes(self.watched, self) if probes else first_probes(self.watched, found))
        self._has_more = probes is None  # the others, which are imported when it is their turn
        self._facts_wanted = not one_look
        self._adding = threading.Lock()
        self._awaits_requests = probes is not None  # given probes are all there are
        self._late: list[ProbeThread] | None = None  # those that wait for requests, and could not be started yet
        self._server_asked = False
        self._procs_seen_t: float | None = None
        self._server_key: tuple[int, int] | None = None

    def __iter__(self) -> Iterator[Event]:
        began = self.clock.stamp()
        ticked = began - self._tick_s
        waiting = list(self._threads)
        while not self._stop.is_set():
            now = self.clock.stamp()
            if waiting or self._has_more:
                waiting = self._start(waiting, now, now - began)
            if now - began >= ON_REQUEST_S:
                self._await_requests()
            if now - ticked >= self._pause_s():
                ticked = now
                self._log_came = False
                yield from self._tick(now)
            try:
                pause_s = max(0.01, self._pause_s() - (now - ticked))
                event = self._queue.get(timeout=min(pause_s, PAINTED_S) if waiting or self._has_more else pause_s)
            except queue.Empty:
                continue
            self._notice(event)
            yield event
            if event.kind == "procs" and self.watched.calm and event.t - ticked > self._interval_s / 2:
                ticked = event.t  # with the readings: the engine need not wake up once more
                yield from self._tick(event.t)

    def _pause_s(self) -> float:
        """Seconds between two ticks."""
        return self._interval_s if self.watched.calm and not self._log_came else self._tick_s

    def _start(self, waiting: list[ProbeThread], now: float, age_s: float) -> list[ProbeThread]:
        """Start the probes whose turn it is; returns the others. The server probe comes first, then the processes,
        then the rest: who the ranks are shall stand on the screen while the others import what they need and a long
        log is read. One look waits for all of them anyway, but for the facts of a start (``read_facts``)."""
        kinds = {thread.probe.kind for thread in self._threads}
        server_known = "server" not in kinds or self._server_asked or age_s >= FIRST_LOOK_S
        no_procs = "procs" not in kinds or (self._server_asked and self._server_key is None)
        painted = self._procs_seen_t is not None and now - self._procs_seen_t >= PAINTED_S
        rest = server_known and (no_procs or painted or age_s >= FIRST_PROCS_S or self.watched.one_look)
        if rest and self._has_more:
            self._has_more = False
            more = self._prepared(more_probes(self.watched))
            self._threads += more
            waiting = waiting + more
        turn = {"server": True, "procs": server_known, "preflight": rest and self._facts_wanted}
        return [thread for thread in waiting if not (turn.get(thread.probe.kind, rest) and self._can_start(thread))]

    def _prepared(self, probes: list[Probe]) -> list[ProbeThread]:
        return [ProbeThread(probe, self.clock, self._emit, self._stop) for probe in probes]

    def _can_start(self, thread: ProbeThread) -> bool:
        """Start it. False: no thread can be started now, which is said; it is tried again."""
        try:
            thread.start()
        except RuntimeError:  # Python's word for EAGAIN
            self.tell(thread.probe.name, *NO_THREAD)
            return False
        return True

    def stop(self) -> None:
        """Asks every probe to end. Threads stuck in a call are daemons and are left behind."""
        self._stop.set()
        for thread in self._threads:
            thread.wake()
        try:
            self._queue.put_nowait(Event(self.clock.stamp(), "tick"))  # the loop need not wait for its next tick
        except queue.Full:
            pass

    def read_facts(self) -> None:
        """Read the facts of a start too, which one look begins without. From the thread that iterates."""
        self._facts_wanted = True

    def request_stacks(self, pids: Sequence[int] | None, samples: int, native: bool, why: str) -> int | None:
        """The number of the request, which its dumps carry; None: there is no probe of stacks."""
        self._await_requests()
        for thread in self._threads:
            request = getattr(thread.probe, "request", None)
            if thread.probe.kind == "stacks" and request is not None:
                number: int = request(pids, samples=samples, native=native, why=why)
                thread.wake()
                return number
        return None

    def request_ras(self) -> None:
        """Ask NCCL's RAS port twice, an interval apart."""
        self._await_requests()
        for thread in self._threads:
            request = getattr(thread.probe, "request", None)
            if thread.probe.kind == "ras" and request is not None:
                request()
                thread.wake()

    def choose(self, pid: int) -> None:
        """Watch the server of this pid from now on (the picker)."""
        for thread in self._threads:
            if isinstance(thread.probe, ServerProbe):
                thread.probe.request(pid)
                thread.wake()

    def _await_requests(self) -> None:
        """Start the probes of stacks and of NCCL's RAS port, once. Any thread."""
        with self._adding:
            if self._awaits_requests:
                return
            if self._late is None:
                self._late = self._prepared(request_probes(self.watched, self))
                self._threads += self._late
            self._late = [thread for thread in self._late if not self._can_start(thread)]
            self._awaits_requests = not self._late

    def wake(self, *kinds: str) -> None:
        for thread in self._threads:
            if not kinds or thread.probe.kind in kinds:
                thread.wake()

    def tell(self, name: str, error: str, remedy: str) -> None:
        """Say something that no probe sees, e.g. the end of a command that sgmon has started. Any thread."""
        self._emit(Event(self.clock.stamp(), "probe", ProbeReading(name, error=error, remedy=remedy)))

    def _tick(self, now: float) -> Iterator[Event]:
        for thread in self._threads:
            reading = thread.hung(now)
            if reading is not None:
                yield Event(now, "probe", reading)
        dropped = self._report_dropped(now)
        if dropped is not None:
            yield Event(now, "probe", dropped)
        yield Event(now, "tick")

    def _report_dropped(self, now: float) -> ProbeReading | None:
        """How many readings were lost, when the number has grown; that it is over, a minute after the last one."""
        count = self.dropped
        if count != self._dropped_reported:
            self._dropped_reported, self._dropped_t = count, now
            words = f"{plural(count, 'reading')} lost so far: the engine gets too little CPU time"
            return ProbeReading("events", error=words, remedy="look at the load of this machine with top")
        if self._dropped_t is not None and now - self._dropped_t >= DROPPED_SHOWN_S:
            self._dropped_t = None
            return ProbeReading("events")
        return None

    def _emit(self, event: Event) -> None:
        """Called by probe threads. Log text is never dropped: its thread waits. Others are, and counted."""
        while not self._stop.is_set():
            try:
                self._queue.put(event, timeout=FULL_S)
                return
            except queue.Full:
                if event.kind != "log":
                    with self._dropping:
                        self.dropped += 1
                    return

    def _processes_seen(self, t: float) -> None:
        if self._procs_seen_t is None:
            self._procs_seen_t = t

    def _notice(self, event: Event) -> None:
        """Wake the probes that read a server when the server probe has found another one."""
        reading = event.reading
        self._log_came = self._log_came or event.kind == "log"
        self.watched.calm = self._calm.observe(event)
        if isinstance(reading, ProcsReading):
            self.processes = reading.processes
            self._processes_seen(event.t)
        elif isinstance(reading, ProbeReading) and reading.name == "procs":
            self._processes_seen(event.t)  # as far as they can be
        elif isinstance(reading, ServerReading):
            self._server_asked = True
            server = reading.server
            if server is not None and self._server_key != server.key:
                self._server_key = server.key
                self.wake("procs", "log", "port", "gpu", "preflight", "start")


def live_probes(watched: Watched) -> list[Probe]:
    """The probes that read on their own."""
    return first_probes(watched) + more_probes(watched)


def first_probes(watched: Watched, found: ServerReading | None = None) -> list[Probe]:
    """Those that find the ranks. Imported here: a replay needs no probe."""
    from sgmon.collect.probes.procs import ProcsProbe

    return [ServerProbe(watched, found), ProcsProbe(watched)]


def more_probes(watched: Watched) -> list[Probe]:
    """The others that read on their own."""
    from sgmon.collect.gpu.probe import GpuProbe
    from sgmon.collect.probes.kernel_log import KernelLogProbe
    from sgmon.collect.probes.logtail import LogProbe
    from sgmon.collect.probes.port import PortProbe
    from sgmon.collect.probes.preflight import PreflightProbe
    from sgmon.collect.probes.start import StartProbe

    probes: list[Probe] = [
        LogProbe(watched),
        PortProbe(watched),
        StartProbe(watched),
        PreflightProbe(watched),
        KernelLogProbe(watched),
    ]
    if watched.settings.watch_dirs:
        from sgmon.collect.probes.watchdir import WatchDirProbe

        probes.append(WatchDirProbe(watched))
    if watched.settings.gpu:
        probes.append(GpuProbe(watched))
    return probes


def request_probes(watched: Watched, source: LiveSource) -> list[Probe]:
    """The probes that wait for requests."""
    from sgmon.collect.probes.pyspy import StackProbe
    from sgmon.collect.probes.ras import RasProbe

    return [StackProbe(watched, lambda: source.processes), RasProbe(watched)]
