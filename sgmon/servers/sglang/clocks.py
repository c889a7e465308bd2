"""What ends an SGLang start by itself, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgmon.model import KillClock
from sgmon.units import rank_list
from sgmon.versions import release

if TYPE_CHECKING:
    from sgmon.analyse.diagnosis.context import Context

#: ``monitored_barrier`` after the weight load: 300 s up to 0.5.5.post3, 480 s from 0.5.6
BARRIER_OLD_S, BARRIER_S = 300.0, 480.0
WARMUP_S, WARMUP_DISAGG_S = 600.0, 1800.0


def kill_clocks(context: Context) -> tuple[KillClock, ...]:
    """The time-outs of SGLang and torch that run now."""
    return tuple(clock for clock in (_barrier(context), _rendezvous(context), _warmup(context)) if clock is not None)


def barrier_limit_s(version: str) -> float:
    """How long the barrier after the weight load waits; the newer limit for an unknown version."""
    numbers = release(version)
    return BARRIER_OLD_S if numbers is not None and numbers < (0, 5, 6) else BARRIER_S


def _barrier(context: Context) -> KillClock | None:
    """Runs from the first rank that has loaded to the last."""
    ends = context.passed("load_end")
    late = [rank for rank in context.ranks if rank.name not in ends and rank.phase in ("weights", "draft_weights")]
    if not ends or not late or len(context.ranks) < 2:
        return None
    limit = barrier_limit_s(context.version)
    names = rank_list([rank.name for rank in late])
    what = f"the barrier after the weight load, where {names} is awaited,"
    return KillClock(what, min(ends.values()) + limit - context.t, limit)


def _rendezvous(context: Context) -> KillClock | None:
    """Only with ``--dist-timeout``: torch's own default differs by backend (10 or 30 min)."""
    begin_t, limit = context.first_passed("dist_init_begin"), context.args.dist_timeout_s
    if begin_t is None or limit is None or context.phase != "dist_init":
        return None
    return KillClock("the rendezvous (--dist-timeout)", begin_t + limit - context.t, limit)


def _warmup(context: Context) -> KillClock | None:
    if context.phase not in ("http", "warmup") or context.was_ready or context.args.skip_server_warmup:
        return None
    begin_t = context.first_passed("warmup_request", "http_up")
    if begin_t is None:
        return None
    limit = WARMUP_DISAGG_S if context.args.disaggregation_mode not in ("", "null") else WARMUP_S
    return KillClock("the warm-up request", begin_t + limit - context.t, limit)
