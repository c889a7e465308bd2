"""Neither hung nor slow can be said yet: nobody was seen, or once only, or not of late, or it was silent before."""

from __future__ import annotations

from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.facts import log_fact, quiet_fact
from sgmon.analyse.diagnosis.grammar import phrase
from sgmon.model import Evidence, NextStep, Verdict
from sgmon.units import lasting, plural

#: what is known of the processes tells nothing of now when it is so old
UNREAD_S = 30.0


def not_known_yet(context: Context) -> Verdict | None:
    """What can be said before movement was looked for long enough; None: it was."""
    if not context.ranks:
        return _unseen(context)
    if _first_look(context):
        return _unjudged(context)
    unread_s = _unread_s(context)
    if unread_s is not None:
        return _unread(context, unread_s)
    return _came_late(context) if _unmoved(context) else None


def _unseen(context: Context) -> Verdict:
    """A server is named, but none of its processes was read: the first second, or no permission."""
    snapshot = context.snapshot
    age = context.t - (snapshot.server_seen_t or 0.0)
    if age < 10.0 or context.t - context.log_activity_t < 30.0:
        return Verdict(
            "progressing", "the server is starting", phase=context.phase, confidence=0.4, rule="first-look"
        )
    return Verdict(
        "unknown",
        "none of the server's processes can be read: neither hung nor slow can be said",
        phase=context.phase,
        confidence=0.9,
        rule="blind",
        evidence=(Evidence("proc", "no process of the server's tree is visible"),),
        next=(NextStep("See what sgmon may read here", "sgmon doctor"),),
    )


def _age_s(context: Context) -> float | None:
    """Seconds since the server was started; None: not known."""
    server = context.snapshot.server
    if server is None or server.started_epoch is None:
        return None
    return context.snapshot.epoch + context.t - server.started_epoch


def _first_look(context: Context) -> bool:
    """No counter has been seen twice yet: nothing can be said about movement."""
    if context.t - (context.snapshot.server_seen_t or 0.0) > 5.0:
        return False
    clocks = [v.clock for v in context.ranks if v.clock is not None]
    return all(c.demand_percent is None and c.first_t is not None and context.t - c.first_t < 3.0 for c in clocks)


def _unjudged(context: Context) -> Verdict:
    """One look at counters says nothing about movement. Live compilers do, and so does what is younger than any
    silence: the log's last line, or the server itself."""
    compiling = [v for v in context.ranks if v.process.compilers]
    if compiling:
        first = compiling[0].process.compilers
        what = f"{plural(len(first), 'live compiler')} below {compiling[0].label}: {first[0].name} {first[0].what}"
        return Verdict(
            "progressing",
            f"{context.phase_words}: {phrase(compiling, 'compiles')} kernels",
            phase=context.phase,
            confidence=0.7,
            rule="first-look",
            evidence=(Evidence("compiler", what.rstrip(), compiling[0].name), log_fact(context)),
        )
    limit_s = context.limits().suspect_s
    young = (_age_s(context) or limit_s) < limit_s
    fresh = context.log_activity_t != 0.0 and context.t - context.log_activity_t < limit_s
    stage = "unknown phase" if context.guessed else context.phase_words
    return Verdict(
        "progressing" if fresh or young else "unknown",
        f"{stage}: first look, not known yet whether anything moves",
        phase=context.phase,
        confidence=0.4,
        rule="first-look",
        evidence=(*(quiet_fact(context, v) for v in context.ranks[:2]), log_fact(context)),
    )


def _unread_s(context: Context) -> float | None:
    """For how long the processes could not be read while the log was silent, too; None: not for long."""
    probe, read_t = context.snapshot.probe("procs"), context.read_t
    if probe is None or read_t is None or not (probe.error or probe.in_flight_since_t is not None):
        return None
    unread_s = min(context.t - read_t, context.t - context.log_activity_t)
    return unread_s if unread_s >= UNREAD_S else None


def _unread(context: Context, unread_s: float) -> Verdict:
    unread = f"the processes have not been read for {lasting(unread_s)}"
    return Verdict(
        "unknown",
        f"{context.phase_words}: hung or slow is not known; {unread}",
        phase=context.phase,
        confidence=0.9,
        rule="unread",
        evidence=(log_fact(context),),
        next=(NextStep("See what sgmon may read here", "sgmon doctor"),),
    )


def _unmoved(context: Context) -> bool:
    """Nothing has moved since sgmon came, into a start that was silent already: no ground to call it alive.
    When that lasts, the stall rules apply."""
    began_t = context.snapshot.server_seen_t or 0.0
    moved = context.helpers_t > began_t or any(
        mark.t > v.clock.first_t
        for v in context.ranks
        if v.clock and v.clock.first_t is not None
        for mark in v.clock.marks
    )
    return not moved and _silent_before(context)


def _silent_before(context: Context) -> bool:
    """The log had been silent for long when the watch began."""
    began_t = context.snapshot.server_seen_t or 0.0
    log = context.snapshot.log
    return log.last_activity_t is not None and began_t - log.last_activity_t >= context.limits().suspect_s


def _came_late(context: Context) -> Verdict:
    looked = lasting(context.t - (context.snapshot.server_seen_t or 0.0))
    return Verdict(
        "unknown",
        f"{context.phase_words}: hung or slow is not known yet; nothing has moved in the {looked} that sgmon looks",
        phase=context.phase,
        confidence=0.9,
        rule="came-late",
        evidence=(log_fact(context), *(quiet_fact(context, v) for v in context.ranks[:2])),
        next=(NextStep("Look for longer than a start may be quiet", "sgmon status --seconds 40"),),
    )
