"""Kill clocks: what will end this start by itself, and when."""

from __future__ import annotations

from dataclasses import dataclass

from sgmon.analyse.diagnosis.context import Context
from sgmon.model import Evidence, Milestone
from sgmon.units import duration, rank_list

#: ``monitored_barrier`` after the weight load: 300 s up to 0.5.5.post3, 480 s from 0.5.6
BARRIER_OLD_S, BARRIER_S = 300.0, 480.0
WARMUP_S, WARMUP_DISAGG_S = 600.0, 1800.0
CHECKPOINT_ENGINE_S = 120.0


@dataclass(frozen=True, slots=True)
class KillClock:
    """A time-out that runs now: of SGLang or torch, or (outside) of a program above the server.

    left_s may be negative: it is due.
    """

    what: str
    left_s: float
    limit_s: float
    outside: bool = False

    def text(self) -> str:
        if self.left_s <= 0:
            return f"{self.what} ({duration(self.limit_s)}) is due now"
        left = duration(self.left_s)
        if self.outside:
            return f"{self.what} ends this server in {left}, {duration(self.limit_s)} after it began"
        return f"this start ends itself in {left}: {self.what} gives up after {duration(self.limit_s)}"


def kill_clocks(context: Context) -> tuple[KillClock, ...]:
    """The clocks that run in this phase, the nearest first."""
    found = [c for c in (_barrier(context), _rendezvous(context), _warmup(context), _above(context)) if c is not None]
    return tuple(sorted(found, key=lambda c: c.left_s))


def clock_fact(context: Context) -> Evidence | None:
    clocks = kill_clocks(context)
    return Evidence("clock", clocks[0].text(), value=round(clocks[0].left_s, 1)) if clocks else None


def barrier_limit_s(version: str) -> float:
    numbers = version_tuple(version)
    return BARRIER_OLD_S if numbers and numbers < (0, 5, 6) else BARRIER_S


def version_tuple(version: str) -> tuple[int, ...]:
    """ "0.5.5.post3" -> (0, 5, 5); () when unknown."""
    numbers = []
    for part in version.split(".")[:3]:
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def _barrier(context: Context) -> KillClock | None:
    """Runs from the first rank that has loaded to the last."""
    ends: dict[str, float] = {}
    for milestone in context.snapshot.log.milestones:
        if milestone.name == "load_end" and milestone.seen_t is not None:
            ends.setdefault(milestone.rank, milestone.seen_t)
    late = [v for v in context.ranks if v.name not in ends and v.phase in ("weights", "draft_weights")]
    if not ends or not late or len(context.ranks) < 2:
        return None
    limit = barrier_limit_s(context.version)
    ranks = rank_list([v.name for v in late])
    return KillClock(
        f"the barrier after the weight load, where {ranks} is awaited,", min(ends.values()) + limit - context.t, limit
    )


def _rendezvous(context: Context) -> KillClock | None:
    begin = _first(context, "dist_init_begin")
    if begin is None or begin.seen_t is None or context.phase != "dist_init":
        return None
    limit = context.args.dist_timeout_s
    if limit is not None:
        return KillClock("the rendezvous (--dist-timeout)", begin.seen_t + limit - context.t, limit)
    return None  # torch's own default differs by backend (10 or 30 min): not a number to promise


def _warmup(context: Context) -> KillClock | None:
    if context.phase not in ("http", "warmup") or context.was_ready or context.args.skip_server_warmup:
        return None
    begin = _first(context, "warmup_request") or _first(context, "http_up")
    if begin is None or begin.seen_t is None:
        return None
    limit = WARMUP_DISAGG_S if context.args.disaggregation_mode not in ("", "null") else WARMUP_S
    return KillClock("the warm-up request", begin.seen_t + limit - context.t, limit)


def _above(context: Context) -> KillClock | None:
    """``timeout N CMD`` among the launcher's ancestors."""
    server = context.snapshot.server
    if server is None or server.kill_s is None or server.kill_epoch is None:
        return None
    left_s = server.kill_epoch - context.snapshot.epoch + server.kill_s - context.t
    return KillClock(f"the timeout above the server (pid {server.kill_pid})", left_s, server.kill_s, outside=True)


def _first(context: Context, name: str) -> Milestone | None:
    return next((m for m in context.snapshot.log.milestones if m.name == name), None)
