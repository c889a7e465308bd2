"""An engine in a program of the user's own is ready without a ready line and without HTTP."""

from __future__ import annotations

from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.ready import OPEN_S
from sgmon.model import Evidence, PortReading, Verdict
from sgmon.units import lasting

RULE = "ready-engine"


def engine_alone(context: Context) -> Verdict | None:
    """ready: it works on requests, or its ranks take them and for ``OPEN_S`` nothing has come that begins an HTTP
    server. None: the launcher is a server's own command, an HTTP server has begun, or the ranks are not that far."""
    server, port, log = context.snapshot.server, context.snapshot.port, context.snapshot.log
    if server is None or not server.in_program or context.guessed or log.http_up_line is not None:
        return None
    if port is None or _listens(port) or not context.ranks or not (context.was_ready or _ranks_are_done(context)):
        return None
    if context.snapshot.verdict.rule == RULE:
        return context.snapshot.verdict
    quiet_s = _quiet_s(context)
    if not context.was_ready and quiet_s is not None and quiet_s < OPEN_S:
        return None
    return Verdict(
        "ready",
        "the engine is ready: its ranks take requests, and the program has no HTTP server",
        phase="serving",
        confidence=0.75,
        rule=RULE,
        evidence=(
            Evidence("stack" if context.snapshot.phase_source == "stack" else "log", _so_far(context, quiet_s)),
            Evidence("port", f"nothing of the program (pid {server.pid}) listens for HTTP"),
        ),
    )


def _ranks_are_done(context: Context) -> bool:
    order, done = context.phases.order, context.phases.order(context.phases.engine_ready)
    return 0 <= done <= order(context.phase)


def _listens(port: PortReading) -> bool:
    """Whether somebody of the server may answer HTTP."""
    return port.answer not in ("skipped", "refused") or any(one.ours is not False for one in port.listeners)


def _quiet_s(context: Context) -> float | None:
    """Seconds since the newest milestone; None where no time of one is known."""
    times = [t for m in context.snapshot.log.milestones if (t := context.snapshot.passed_t(m)) is not None]
    return context.t - max(times) if times else None


def _so_far(context: Context, quiet_s: float | None) -> str:
    if context.was_ready:
        return f"it works on requests (line {context.snapshot.log.ready_line})"
    if context.snapshot.phase_source == "stack":
        return "the stacks show that its ranks wait for requests or work on one"
    if context.snapshot.has_been_ready or quiet_s is None:
        return "its ranks have finished their start"
    return f"its ranks have finished their start, and no further milestone has come for {lasting(quiet_s)}"
