"""Signs of activity: which signal of which process moved last, and how much.

A deterministic accumulator: the same events give the same clocks. The Store calls it after each event
was folded into the snapshot.
"""

from __future__ import annotations

from collections import deque

from msgspec.structs import replace

from sgmon.analyse.activity.clock import clock_of
from sgmon.analyse.activity.gpu_history import GpuHistory
from sgmon.analyse.activity.marks import file_marks, log_marks, process_marks
from sgmon.analyse.activity.oom import OomKills
from sgmon.analyse.activity.watched import (
    Watched,
    cpu_and_wait,
    follow_load,
    follow_positions,
    keep_name,
    met,
    with_marks,
)
from sgmon.analyse.gpu.rank_mapping import gpu_of
from sgmon.model import (
    ESSENTIAL_ROLES,
    ActivityClock,
    Event,
    GpuLoad,
    GpuReading,
    LogReading,
    Mark,
    Process,
    ProcsReading,
    Role,
    Snapshot,
    WatchDirReading,
)
from sgmon.units import duration

#: a pid that is in no reading for this long, without a word of its end, is gone
ABSENT_S = 3.0
#: no reading for longer than this, and than so many of the usual pauses: nobody looked
HOLE_S, HOLE_FACTOR = 6.0, 4.0
#: seconds of CPU time in such a pause that tell a process that runs from one that sleeps
HOLE_CPU_S = 0.02


class ActivityTracker:
    """Keeps what the clocks need and nothing else."""

    def __init__(self) -> None:
        self._watched: dict[tuple[int, int], Watched] = {}
        self._gpus: dict[int, GpuHistory] = {}
        self._gpu_of: dict[int, int | None] = {}
        self._server: tuple[int, int] | None = None
        self._oom = OomKills()
        self._first_oom: int | None = None
        self._oom_kills: int | None = None
        self._clocks: tuple[ActivityClock, ...] = ()
        self._dirs: tuple[float, WatchDirReading] | None = None
        self._read_t: float | None = None  # of the last reading of /proc
        self._gaps: deque[float] = deque(maxlen=15)  # seconds between the last readings

    def observe(self, event: Event, snapshot: Snapshot) -> tuple[ActivityClock, ...]:
        """Fold one event; the clocks of every watched process, in birth order."""
        self._follow(snapshot)
        reading = event.reading
        if isinstance(reading, ProcsReading):
            self._processes(reading, event.t, event.t - (event.took_s or 0.0), snapshot)
        elif isinstance(reading, GpuReading):
            self._gpu(reading, snapshot, event.t)
            self._clocks = tuple(
                self._with_gpu(clock, watched)
                for clock, watched in zip(self._clocks, self._watched.values(), strict=True)
            )
            return self._clocks
        elif isinstance(reading, LogReading):
            self._log(snapshot)
            self._clocks = tuple(
                with_marks(clock, watched)
                for clock, watched in zip(self._clocks, self._watched.values(), strict=True)
            )
            return self._clocks
        elif isinstance(reading, WatchDirReading):
            self._files(reading, event.t)
        else:
            return self._clocks
        self._clocks = tuple(self._clock(w) for w in self._watched.values())
        return self._clocks

    def _follow(self, snapshot: Snapshot) -> None:
        server = snapshot.server
        if server is None:
            return
        key = server.key
        if key != self._server:
            if self._server is not None:
                self._watched.clear()
                self._oom = OomKills()
                self._first_oom = None
                self._dirs = None
                self._clocks = ()
            self._server = key

    def _processes(self, reading: ProcsReading, t: float, began_t: float, snapshot: Snapshot) -> None:
        """began_t: when the reading began: what it shows as alive may have ended before it was over."""
        self._oom.add(reading.oom)
        if reading.oom_kills is not None:
            if self._first_oom is None:
                self._first_oom = reading.oom_kills
            self._oom_kills = reading.oom_kills - self._first_oom
        hole_s = self._hole_s(t)
        before = {key: watched.process.cpu_s for key, watched in self._watched.items()} if hole_s else {}
        present = set()
        leads = {process.ppid for process in reading.processes if process.role in ESSENTIAL_ROLES and process.alive}
        for process in reading.processes:
            key = process.key
            if process.role not in ESSENTIAL_ROLES and key not in self._watched:
                continue
            present.add(key)
            self._process(key, process, t, began_t, process.pid in leads)
            if hole_s is not None:
                self._after_hole(self._watched[key], before.get(key), hole_s, t)
        for key, watched in self._watched.items():
            if key not in present and watched.gone_t is None and t - watched.seen_t >= ABSENT_S:
                watched.gone_t = watched.seen_t
                watched.process = replace(watched.process, gone=True, exit_source="absent from /proc")
        self._load_bytes(snapshot)

    def _after_hole(self, watched: Watched, cpu_s: float | None, hole_s: float, t: float) -> None:
        """A starved process gets a little CPU time in a pause of the readings; a hung one that sleeps gets none."""
        now = watched.process.cpu_s
        if cpu_s is not None and now is not None and now - cpu_s >= HOLE_CPU_S:
            text = f"CPU time in {duration(hole_s)} without a reading"
            self._mark(watched, Mark("cpu", t, text, (now - cpu_s) / hole_s * 100, queued=True))

    def _hole_s(self, t: float) -> float | None:
        """Seconds since the last reading, where that is a pause (a machine so busy that sgmon did not run)."""
        gap = t - self._read_t if self._read_t is not None else 0.0
        usual = sorted(self._gaps)[len(self._gaps) // 2] if self._gaps else t
        self._read_t = t
        if gap > max(HOLE_S, HOLE_FACTOR * usual):
            return gap
        self._gaps.append(gap)
        return None

    def _process(self, key: tuple[int, int], process: Process, t: float, began_t: float, leads: bool) -> None:
        watched = self._watched.get(key)
        if watched is None:
            watched = met(process, t)
            self._watched[key] = watched
        old = watched.process
        if not process.alive:
            watched.gone_t = t if watched.gone_t is None else min(watched.gone_t, t)
            watched.process = keep_name(process, old)
            watched.seen_t = max(watched.seen_t, t)
            return
        watched.alive_t = began_t if watched.alive_t is None else max(watched.alive_t, began_t)
        if t < watched.seen_t:
            return  # an older reading that came late
        watched.gone_t = None  # same pid and start: it was out of sight, not dead
        if process.state != old.state:
            watched.state_since_t = t
        if old.halted and not process.halted:
            watched.went_on_t = t  # being paused is no silence of its own
        watched.history.add(process, t)
        follow_positions(watched, process, t)
        watched.compilers.update((one.pid, one.cpu_s) for one in process.compilers)
        for mark in process_marks(old, process, watched.history, t, leads):
            self._mark(watched, mark)
        watched.process = process
        watched.seen_t = t

    def _gpu(self, reading: GpuReading, snapshot: Snapshot, t: float) -> None:
        alive = [w for w in self._watched.values() if w.gone_t is None and w.process.role == Role.WORKER]
        self._gpu_of = {w.process.pid: _gpu_index(w.process, snapshot) for w in alive}
        on: dict[int | None, list[Watched]] = {}
        for watched in alive:
            on.setdefault(self._gpu_of[watched.process.pid], []).append(watched)
        for gpu in reading.gpus:
            history = self._gpus.setdefault(gpu.index, GpuHistory())
            marks = history.add(gpu, t)
            for watched in on.get(gpu.index, ()):
                for mark in marks:
                    self._mark(watched, mark)

    def gpu_loads(self) -> tuple[GpuLoad, ...]:
        """What each GPU does, in the order of the last reading."""
        return tuple(history.load for history in self._gpus.values())

    def _with_gpu(self, clock: ActivityClock, watched: Watched) -> ActivityClock:
        return self._gpu_window(with_marks(clock, watched))

    def _gpu_window(self, clock: ActivityClock) -> ActivityClock:
        index = self._gpu_of.get(clock.pid)
        history = None if index is None else self._gpus.get(index)
        if history is None:
            return clock
        load = history.load
        return replace(
            clock,
            gpu_util_min=load.util_min,
            gpu_util_max=load.util_max,
            gpu_power_max_w=load.high_w,
            gpu_spins=load.work == "spins",
        )

    def _log(self, snapshot: Snapshot) -> None:
        workers, launcher = self._writers()
        for rank, mark in log_marks(snapshot.log):
            target = workers.get(rank, launcher)
            if target is not None:
                self._mark(target, mark)

    def _files(self, reading: WatchDirReading, t: float) -> None:
        """Growth is the server's sign of activity: which rank wrote is not known, so it is noted for the launcher."""
        if self._dirs is not None:
            alive = [w for w in self._watched.values() if w.gone_t is None]
            launcher = next((w for w in alive if w.process.role == Role.LAUNCHER), None)
            for mark in file_marks(*self._dirs, reading, t):
                if launcher is not None:
                    self._mark(launcher, mark)
        self._dirs = (t, reading)

    def _writers(self) -> tuple[dict[str, Watched], Watched | None]:
        """Who writes lines: the live process of each rank; of any other line the launcher."""
        workers: dict[str, Watched] = {}
        launcher = None
        for watched in self._watched.values():
            if watched.gone_t is None and watched.process.role == Role.WORKER:
                workers.setdefault(watched.process.rank, watched)
            elif watched.gone_t is None and watched.process.role == Role.LAUNCHER:
                launcher = watched
        return workers, launcher

    def _mark(self, watched: Watched, mark: Mark) -> None:
        old = watched.marks.get(mark.signal)
        if old is not None and old.t >= mark.t:
            return
        newest = max((m.t for m in watched.marks.values()), default=watched.first_t)
        if not watched.process.halted and watched.went_on_t <= newest:
            watched.longest_quiet_s = max(watched.longest_quiet_s, mark.t - newest)
        watched.marks[mark.signal] = mark
        if mark.signal != "cpu":
            watched.cpu_then = cpu_and_wait(watched.process)

    def _load_bytes(self, snapshot: Snapshot) -> None:
        loading = {p.rank for p in snapshot.log.ranks if p.phase in ("weights", "draft_weights")}
        for watched in self._watched.values():
            if watched.process.role == Role.WORKER and watched.gone_t is None:
                follow_load(watched, loads=watched.process.rank in loading)

    def _clock(self, watched: Watched) -> ActivityClock:
        alone = not any(
            other.process.cgroup == watched.process.cgroup for other in self._watched.values() if other is not watched
        )
        return self._gpu_window(clock_of(watched, self._oom, self._oom_kills, alone=alone))


def _gpu_index(process: Process, snapshot: Snapshot) -> int | None:
    gpu = gpu_of(process, snapshot.gpu.gpus)
    return None if gpu is None else gpu.index
