"""A process that is watched, and what is known of it so far."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.analyse.activity.counters import History
from sgmon.model import (
    ActivityClock,
    FilePosition,
    Mark,
    Process,
)


class Watched(Struct):
    process: Process
    first_t: float
    seen_t: float
    state_since_t: float
    history: History = field(default_factory=History)
    marks: dict[str, Mark] = field(default_factory=dict)
    longest_quiet_s: float = 0.0
    went_on_t: float = 0.0
    gone_t: float | None = None
    alive_t: float | None = None
    ppid: int = 0
    cpu_then: tuple[float, float] | None = None  # CPU and run-queue seconds at its newest sign that is no CPU time
    load_start: tuple[int, int] | None = None
    load_t: float | None = None
    positions: dict[tuple[int, str], FilePosition] = field(default_factory=dict)  # (fd, file) -> as last seen
    position: FilePosition | None = None
    compilers: dict[int, float] = field(default_factory=dict)  # pid -> CPU seconds, as last seen
    load_bytes: int | None = None
    load_read_bytes: int | None = None


def follow_positions(watched: Watched, process: Process, t: float) -> None:
    """Remember how far its files are read. A file that is closed has no position any more."""
    found: dict[tuple[int, str], FilePosition] = {}
    for fd in process.fds:
        if fd.pos is None:
            continue
        old = watched.positions.get((fd.fd, fd.target))
        same = old is not None and old.pos == fd.pos
        found[fd.fd, fd.target] = old if same and old is not None else FilePosition(fd.target, fd.pos, t)
        if old is not None and fd.pos > old.pos:
            watched.position = found[fd.fd, fd.target]
    if watched.position is not None and watched.position not in found.values():
        watched.position = None
    watched.positions = found


def follow_load(watched: Watched, *, loads: bool) -> None:
    """Count the bytes of a rank's weight load. loads: the log says that it is in it."""
    process = watched.process
    if watched.load_start is None:
        mapped = bool(process.shards and process.shards.names)
        if not mapped and not loads:
            return
        watched.load_start = (process.read_bytes or 0, process.rss_file_bytes or 0)
        watched.load_t = watched.seen_t
    read = None if process.read_bytes is None else process.read_bytes - watched.load_start[0]
    grown = (process.rss_file_bytes or 0) - watched.load_start[1]
    if read is not None:
        watched.load_read_bytes = max(read, watched.load_read_bytes or 0)
    if read is not None or grown > 0:  # nothing mapped is no 0 B read where that is hidden
        watched.load_bytes = max(read or 0, grown, watched.load_bytes or 0)


def met(process: Process, t: float) -> Watched:
    """A process that is seen for the first time."""
    return Watched(process, first_t=t, seen_t=t, state_since_t=t, ppid=process.ppid, cpu_then=cpu_and_wait(process))


def with_marks(clock: ActivityClock, watched: Watched) -> ActivityClock:
    marks = tuple(sorted(watched.marks.values(), key=lambda m: (-m.t, m.signal)))
    if marks == clock.marks and clock.longest_quiet_s == watched.longest_quiet_s:
        return clock
    return replace(
        clock,
        marks=marks,
        since_t=marks[0].t if marks else watched.first_t,
        longest_quiet_s=watched.longest_quiet_s,
    )


def cpu_and_wait(process: Process) -> tuple[float, float] | None:
    """Seconds on a CPU and waiting for one, all threads; None: not known."""
    return None if process.cpu_s is None or process.wait_s is None else (process.cpu_s, process.wait_s)


def cpu_share_alone(watched: Watched) -> float | None:
    """Share of the CPU time that it wanted, and got, since its newest sign of activity that is no CPU time; None: not
    known. Many threads may want many cores: more than one core's time is not asked."""
    then, now = watched.cpu_then, cpu_and_wait(watched.process)
    if then is None or now is None:
        return None
    newest = max((mark.t for mark in watched.marks.values() if mark.signal != "cpu"), default=watched.first_t)
    got_s, waited_s = now[0] - then[0], now[1] - then[1]
    wanted_s = min(got_s + waited_s, watched.seen_t - newest)
    return min(1.0, got_s / wanted_s) if wanted_s > 0 else None


def keep_name(dead: Process, before: Process) -> Process:
    """A dead process has lost its title: keep who it was."""
    if before.role == dead.role and before.rank == dead.rank:
        return dead
    return replace(
        dead,
        role=before.role,
        rank=before.rank,
        rank_inferred=before.rank_inferred,
        title=dead.title or before.title,
    )
