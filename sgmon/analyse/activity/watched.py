"""A process that is watched, and what is known of it so far."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.analyse.activity.counters import History
from sgmon.model import (
    ActivityClock,
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
    compilers: dict[int, float] = field(default_factory=dict)  # pid -> CPU seconds, as last seen
    load_bytes: int | None = None
    load_read_bytes: int | None = None


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
