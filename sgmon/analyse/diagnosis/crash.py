"""Crashed: a process is gone, or the log named a cause that nothing survives. The order of death is in
``sgmon.analyse.deaths``; what is said of it in ``crash_words`` and ``crash_evidence``."""

from __future__ import annotations

from sgmon.analyse.deaths.order import Order, order_of
from sgmon.analyse.deaths.sayings import named_pid, names_a_process
from sgmon.analyse.deaths.words import was_asked
from sgmon.analyse.diagnosis.absent import expected_ranks
from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.crash_evidence import death_facts, log_steps
from sgmon.analyse.diagnosis.crash_phase import OPEN, SETTLED, server_phase
from sgmon.analyse.diagnosis.crash_words import headline, unseen_headline
from sgmon.analyse.diagnosis.ended import ended, interrupted, may_be_a_shutdown
from sgmon.analyse.diagnosis.log_crash import from_log, is_fatal
from sgmon.analyse.diagnosis.ready import still_says_200
from sgmon.model import Evidence, LogError, Role, Snapshot, Verdict
from sgmon.units import plural

#: verdicts that stand for one look longer, and the most that this look may take
_GOES_ON = frozenset({"progressing", "slow", "waiting-by-design", "will-fail", "ready", "unhealthy"})
_NEXT_LOOK_S = 2.0
#: a launcher that was asked to end has done so by then, mostly: its ranks end first
_LAUNCHER_ENDS_S = 0.9


def crashed(context: Context) -> Verdict | None:
    """A process is gone, or the log's first cause is fatal."""
    stopped = interrupted(context)
    if stopped is not None:
        return stopped
    order = order_of(context.snapshot)
    if order is not None and (order.first or order.candidates or order.taken):
        asked = ended(context, order)
        if asked is None and may_be_a_shutdown(context, order):
            return context.snapshot.verdict
        found = asked or _from_deaths(context, order)
        return context.snapshot.verdict if found.rule == OPEN and _may_read_otherwise(context, order) else found
    error = context.snapshot.log.error
    if error is not None and is_fatal(context, error):
        return from_log(context, error)
    return None


def restarted_facts(snapshot: Snapshot) -> tuple[Evidence, ...]:
    """Ends without which the server goes on, or whose manager starts another process: a fact, no crash."""
    order = order_of(snapshot)
    if order is None or not order.restarted:
        return ()
    pids = ", ".join(str(death.pid) for death in order.restarted[-4:])
    words = plural(len(order.restarted), "helper")
    return (Evidence("proc", f"{words} ended, and the server goes on without or with a new one: pid {pids}"),)


def _may_read_otherwise(context: Context, order: Order) -> bool:
    """These are ends that the next look may read as an end that was asked for (Ctrl-C reaches all processes at once,
    and a launcher kills its ranks): no word yet is better than a wrong one. A launcher that has ended tells at the
    next look, however soon that is; one that lives is given the time in which it ends after its ranks."""
    old, dead = context.snapshot.verdict, (*order.candidates, *order.taken)
    if old.state not in _GOES_ON or (len(dead) == 1 and dead[0].signal and not was_asked(dead[0])):
        return False
    seen_t = min(death.clock.gone_t or death.latest for death in dead)
    read_t = context.read_t
    if context.t - seen_t >= _NEXT_LOOK_S or (read_t is not None and read_t - seen_t >= _LAUNCHER_ENDS_S):
        return False
    return read_t is None or read_t <= seen_t or not any(death.is_launcher for death in dead)


def _from_deaths(context: Context, order: Order) -> Verdict:
    unseen = _gone_before(context, order)
    evidence = death_facts(context, order, unseen=bool(unseen))
    first, cause, only = order.first, order.cause, order.only
    rank = cause.rank if cause is not None and cause.rank else only.rank if only is not None else ""
    told = _told_of(context, unseen) if unseen else None
    if unseen:
        rank = told.rank if told is not None and told.rank in unseen else ""
    dead = (*((first,) if first is not None else ()), *order.candidates, *order.taken)
    since_t = min(death.latest for death in dead)
    answers = still_says_200(context, since_t)
    if answers is not None:
        evidence.insert(1, answers)
    return Verdict(
        "crashed",
        unseen_headline(context, order, unseen, told) if unseen else headline(context, order),
        phase=server_phase(context),
        since_t=since_t,
        confidence=_confidence(order),
        rule=OPEN if order.open and first is None and cause is None else SETTLED,
        odd_ranks=(rank,) if rank else (),
        evidence=tuple(evidence[:5]),
        next=log_steps(context, context.snapshot.log.error),
    )


def _gone_before(context: Context, order: Order) -> tuple[str, ...]:
    """The ranks that had died and were reaped before sgmon looked, where the one that would be named as the first
    was found dead, too, by a signal that the launcher sends: it may have been taken down with them."""
    only = order.only
    if only is None or only.is_launcher or order.cause is not None or only.clock.alive_t is not None:
        return ()
    if only.signal not in context.family.ends.kills:
        return ()
    workers = (c for c in context.snapshot.clocks if Role.WORKER in (c.role, c.becomes) or c.role is Role.ENGINE)
    known = {clock.rank for clock in workers}
    return tuple(rank for rank in expected_ranks(context) if rank not in known)


def _told_of(context: Context, unseen: tuple[str, ...]) -> LogError | None:
    """The log's first failure where it is of one of these, or of a process that no reading has; else None."""
    error = context.snapshot.log.error
    if error is None or error.rank in unseen:
        return error
    line = next((c for c in context.snapshot.log.complaints if c.line == error.line and names_a_process(c)), None)
    return error if line is not None and named_pid(context.snapshot, line) is None else None


def _confidence(order: Order) -> float:
    if order.cause is not None or (order.first is not None and order.first.violent):
        return 0.98
    return 0.9
