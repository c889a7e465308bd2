"""Kill clocks: what will end this start by itself, and when."""

from __future__ import annotations

from sgmon.analyse.diagnosis.context import Context
from sgmon.model import Evidence, KillClock
from sgmon.units import duration


def kill_clocks(context: Context) -> tuple[KillClock, ...]:
    """The clocks that run in this phase, the nearest first."""
    above = _above(context)
    clocks = (*context.family.kill_clocks(context), *((above,) if above is not None else ()))
    return tuple(sorted(clocks, key=lambda clock: clock.left_s))


def clock_fact(clock: KillClock) -> Evidence:
    """ "this start ends itself in 50s: the warm-up request gives up after 10m00s"."""
    return Evidence("clock", _text(clock), value=round(clock.left_s, 1))


def _text(clock: KillClock) -> str:
    if clock.left_s <= 0:
        return f"{clock.what} ({duration(clock.limit_s)}) is due now"
    left = duration(clock.left_s)
    if clock.outside:
        return f"{clock.what} ends this server in {left}, {duration(clock.limit_s)} after it began"
    return f"this start ends itself in {left}: {clock.what} gives up after {duration(clock.limit_s)}"


def _above(context: Context) -> KillClock | None:
    """``timeout N CMD`` among the launcher's ancestors."""
    server = context.snapshot.server
    if server is None or server.kill_s is None or server.kill_epoch is None:
        return None
    left_s = server.kill_epoch - context.snapshot.epoch + server.kill_s - context.t
    return KillClock(f"the timeout above the server (pid {server.kill_pid})", left_s, server.kill_s, outside=True)
