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
