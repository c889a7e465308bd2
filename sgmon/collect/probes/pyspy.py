"""Stacks on request: py-spy on each process, two at once, the first results shown while the rest is under way."""

from __future__ import annotations

import itertools
import queue
import selectors
import threading
from collections import deque
from collections.abc import Callable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.analyse.stacks import refusals
from sgmon.analyse.stacks.rules import rules_of
from sgmon.collect.probes.base import Watched
from sgmon.collect.probes.pyspy_dump import RunningDump, failed, find_pyspy, same_process
from sgmon.model import Process, Role, StackDump, StacksReading

AT_ONCE = 2
_GATHER_S = 0.3  # results that come this close together are one reading
_WAIT_S = 0.5
#: asked when no pids are named, in this order: ranks first
_ROLES = (Role.WORKER, Role.IMPORTING, Role.CONTROLLER, Role.LAUNCHER, Role.DETOKENIZER, Role.TOKENIZER)
_FOREIGN_PROC = refusals.Refusal(
    "proc-root",
    "the watched processes live below another /proc: their pids are not ours",
    host="run sgmon where the server runs",
)
_NOT_STARTED = refusals.Refusal("not-started", "py-spy could not be started", host="free memory or processes")


class _Job(Struct):
    """One request while it is worked on."""

    number: int
    pids: tuple[int, ...] | None
    samples: int
    native: bool
    why: str
    interval_s: float
    sample: int = -1
    next_t: float = 0.0
    todo: deque[Process] = field(default_factory=deque)
    running: list[RunningDump] = field(default_factory=list)
    retried: set[int] = field(default_factory=set)
    order: dict[int, int] = field(default_factory=dict)  # pid -> place, so that rows do not jump
    fresh: list[StackDump] = field(default_factory=list)  # not in a reading yet

    @property
    def done(self) -> bool:
        return not self.todo and not self.running and self.sample + 1 >= self.samples


class StackProbe:
    """``request`` from any thread; ``read`` brings the new dumps, ``done`` with the last."""

    name = "stacks"
    kind = "stacks"
    interval_s = 30.0  # a request wakes it
    deadline_s = 30.0

    def __init__(self, watched: Watched, processes: Callable[[], tuple[Process, ...]]) -> None:
        self._watched = watched
        self._root = watched.settings.proc_root
        self._now = watched.clock.now
        self._processes = processes
        self._requests: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._numbers = itertools.count(1)
        self._job: _Job | None = None
        self._closed = threading.Event()
        self.busy = False

    def request(
        self,
        pids: Sequence[int] | None,
        samples: int = 1,
        native: bool = False,
        why: str = "",
        interval_s: float = 1.0,
    ) -> int:
        """Ask for dumps of these pids (None: every rank and the launcher); returns the number of the request."""
        number = next(self._numbers)
        wanted = None if pids is None else tuple(dict.fromkeys(pids))
        self._requests.put(_Job(number, wanted, max(1, samples), native, why, interval_s))
        return number

    def read(self) -> StacksReading | None:
        """One step of the oldest request. ``busy`` until all requests are answered."""
        self.busy = False
        if self._job is None:
            try:
                self._job = self._requests.get_nowait()
            except queue.Empty:
                return None
        job = self._job
        reading = self._step(job)
        if job.done:
            self._job = None
        self.busy = self._job is not None or not self._requests.empty()
        return reading

    def close(self) -> None:
        self._closed.set()
        for dump in self._job.running if self._job else ():
            dump.finish()
        self._job = None

    def _step(self, job: _Job) -> StacksReading | None:
        if not job.todo and not job.running:
            wait_s = job.next_t - self._now() if job.sample >= 0 else 0.0
            if wait_s > 0:
                self._closed.wait(min(wait_s, _WAIT_S))
                return None
            job.sample += 1
            job.next_t = self._now() + job.interval_s
            job.todo.extend(self._targets(job))
            job.order.update((process.pid, place) for place, process in enumerate(job.todo))
            job.retried.clear()
        self._work(job)
        if not job.fresh and not job.done:
            return None
        job.fresh.sort(key=lambda dump: (dump.sample, job.order[dump.pid]))
        dumps = tuple(replace(dump, request=job.number) for dump in job.fresh)
        job.fresh.clear()
        return StacksReading(job.number, job.why, dumps, done=job.done)

    def _targets(self, job: _Job) -> list[Process]:
        known = {process.pid: process for process in self._processes() if process.alive}
        if job.pids is not None:
            return [known.get(pid) or Process(pid=pid, ppid=0, start_ticks=0, role=Role.OTHER) for pid in job.pids]
        chosen = [process for process in known.values() if process.role in _ROLES]
        return sorted(chosen, key=lambda process: (_ROLES.index(process.role), process.pid))

    def _work(self, job: _Job) -> None:
        """Run dumps until one has ended, and for the moment after, in which others often end too."""
        until: float | None = None
        while True:
            while job.todo and len(job.running) < AT_ONCE:
                self._start(job, job.todo.popleft())
            if until is None and job.fresh:
                until = self._now() + _GATHER_S
            if not job.running or (until is not None and self._now() >= until):
                return
            self._wait(job)

    def _start(self, job: _Job, process: Process) -> None:
        pyspy = find_pyspy()
        if self._root != "/proc":
            reason = _FOREIGN_PROC
        elif pyspy is None:
            reason = refusals.NO_PYSPY
        elif not same_process(self._root, process):
            reason = refusals.GONE
        else:
            try:
                tree = rules_of(self._watched.server).source_tree
                job.running.append(RunningDump(pyspy, process, job.native, job.sample, self._root, self._now, tree))
                return
            except OSError:
                reason = _NOT_STARTED
        job.fresh.append(failed(process, reason, self._now(), job.sample))

    def _wait(self, job: _Job) -> None:
        """Wait for output or a deadline, then collect what has ended."""
        with selectors.DefaultSelector() as selector:
            owner = {fd: dump for dump in job.running for fd in dump.open_fds}
            for fd in owner:
                selector.register(fd, selectors.EVENT_READ)
            left = min(dump.deadline_t for dump in job.running) - self._now()
            for key, _ in selector.select(max(0.0, min(left, _WAIT_S))):
                owner[key.fd].feed(key.fd)
        now = self._now()
        for dump in [d for d in job.running if not d.open_fds or now >= d.deadline_t]:
            job.running.remove(dump)
            result = dump.finish()
            pid = dump.process.pid
            if result.error and dump.torn() and pid not in job.retried:
                job.retried.add(pid)
                job.todo.appendleft(dump.process)
            else:
                job.fresh.append(result)
