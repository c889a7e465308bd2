"""What ends a vLLM start by itself, and when. Nearly nothing does: a launcher waits for its engine cores for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgmon.model import KillClock

if TYPE_CHECKING:
    from sgmon.analyse.diagnosis.context import Context


def kill_clocks(context: Context) -> tuple[KillClock, ...]:
    """The time-outs of vLLM and torch that run now."""
    return tuple(clock for clock in (_rendezvous(context),) if clock is not None)


def _rendezvous(context: Context) -> KillClock | None:
    """Only with ``--distributed-timeout-seconds`` (0.18 on): torch's default differs by backend (10 or 30 min)."""
    begin_t, limit = context.first_passed("dist_init_begin"), context.args.dist_timeout_s
    if begin_t is None or limit is None or context.phase != "dist_init":
        return None
    return KillClock("the rendezvous (--distributed-timeout-seconds)", begin_t + limit - context.t, limit)
