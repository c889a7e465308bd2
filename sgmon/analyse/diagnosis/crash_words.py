"""The headline of a crash: who ended first, how, and in which phase."""

from __future__ import annotations

from sgmon.analyse.deaths.death import Death
from sgmon.analyse.deaths.order import Order, oom_killed
from sgmon.analyse.deaths.words import how_it_ended, names, who
from sgmon.analyse.diagnosis.by_design import unresolved
from sgmon.analyse.diagnosis.cause_words import cause_words, figures
from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.crash_phase import phase_of, stage_of
from sgmon.analyse.log import catalogue
from sgmon.model import LogError, Role
from sgmon.units import duration, plural, rank_list

_SIGKILL = 9
#: ends of a rendezvous to which a name may have led that nobody knows
_NOT_MET = frozenset({"connect_timeout", "store_wait_timeout"})


def headline(context: Context, order: Order) -> str:
    """What killed it, where the log told that; else who ended first, as far as that is known."""
    first, cause = order.first, order.cause
    error = context.snapshot.log.error
    if error is not None and (first is None or not first.signal) and _unresolved(context, error):
        return error_headline(context, error, phase_of(context, error.rank))
    if cause is not None and (first is None or first.rank in ("", cause.rank)) and not order.candidates:
        return error_headline(context, cause, phase_of(context, cause.rank, first.pid if first else None))
    return _unknown_first(context, order) if first is None else _alone(context, first, bool(order.taken))


def unseen_headline(context: Context, order: Order, unseen: tuple[str, ...], told: LogError | None) -> str:
    """Where the ranks ``unseen`` were gone before sgmon looked. told: the log's first failure, if it is of these."""
    if told is not None:
        return error_headline(context, told, phase_of(context, told.rank))
    only = order.only
    assert only is not None  # the one that was found dead, too
    ranks = rank_list(unseen) if all(unseen) else f"the {context.label(Role.WORKER)}"
    both = f"{ranks} and {who(context, only)}"
    return f"{both} had ended before sgmon looked {stage_of(context, None)}; which first is not known"


def _alone(context: Context, first: Death, others: bool = False) -> str:
    """Who has ended, and how. others: some have ended since."""
    subject = "the launcher" if first.is_launcher else who(context, first)
    how = "was killed by the kernel's OOM killer" if _by_oom(context, first) else how_it_ended(first)
    ends = context.launcher is None or context.launcher.ending
    told = others or context.snapshot.log.error is not None or ends
    unaware = "" if told else "; the launcher has not noticed yet"
    return f"{subject} {how} {stage_of(context, first)}{unaware}"


def _unknown_first(context: Context, order: Order) -> str:
    """Nobody can be named as the first: who died, within which time, and what is not known."""
    if len(order.candidates) == 1 and not order.taken:
        return _alone(context, order.candidates[0])
    stage = stage_of(context, None)
    if order.lost is not None:
        node = "on another node" if context.args.nnodes > 1 else "that is not known"
        return f"{order.lost.rank or 'a rank'} lost the connection to a rank {node} {stage}"
    some = order.candidates or order.taken
    if len(some) == 1:
        return f"{who(context, some[0])} {how_it_ended(some[0])} {stage}"
    yet = " yet" if order.open else ""
    within = duration(max(0.1, order.span_s)) if order.candidates else ""
    timed = f" within {within}" if within else ""
    shown = names(context, some)
    return f"{shown} died{timed} {stage}{_struck(some)}; which first is not known{yet}"


def _struck(some: tuple[Death, ...]) -> str:
    """ ": the kernel's OOM killer struck 2 times", in their control group; "" if it did not, or is not known."""
    times = max(death.clock.oom or death.clock.oom_kills or 0 for death in some)
    killed = times and any(death.signal == _SIGKILL for death in some)
    return f": the kernel's OOM killer struck {plural(times, 'time')}" if killed else ""


def _by_oom(context: Context, first: Death) -> bool:
    """The OOM killer's count moved, and nothing else of the server can have sent this SIGKILL."""
    return first.signal == _SIGKILL and (
        oom_killed(context.snapshot, first) or bool(first.clock.oom or first.clock.oom_kills)
    )


def error_headline(context: Context, error: LogError, phase: str) -> str:
    """ "TP1: out of GPU memory (KV cache): 924.00 MiB asked, 230.00 MiB free"."""
    who = f"{error.rank}: " if error.rank else ""
    words = _unresolved(context, error) or cause_words(error, catalogue.of_family(context.snapshot.log.family))
    stage = "after it was ready" if context.has_been_ready else context.phases.words(phase)
    amounts = figures(error)
    return f"{who}{words} ({stage})" + (f": {amounts}" if amounts else "")


def _unresolved(context: Context, error: LogError) -> str:
    """ "the rendezvous head:5000 cannot be resolved: Name or service not known", where that is why it timed out."""
    nowhere = unresolved(context) if error.kind in _NOT_MET else None
    return "" if nowhere is None else f"the rendezvous {nowhere[0]}"
