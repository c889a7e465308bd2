"""Why a start that moves is called slow: a starved CPU, a slow disk, or longer than usual on this machine."""

from __future__ import annotations

from sgmon.analyse.diagnosis import silence_limits, usual
from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.facts import since
from sgmon.analyse.diagnosis.grammar import names, phrase, verb
from sgmon.analyse.diagnosis.load import load_of
from sgmon.model import Rank, WaitKind
from sgmon.model.rank import FRESH_S
from sgmon.units import duration, percent, rate

#: bytes/s below which a load is called slow
SLOW_BYTES_S = 1024 * 1024


def slowness(context: Context, movers: list[Rank]) -> str:
    """The reason in words, or "" when it is not slow."""
    return _starved(movers) or _alone(context, movers) or _disk(context, movers) or _unusual(context)


def _starved(movers: list[Rank]) -> str:
    """It wants a CPU and gets a fifth of it at most."""
    starving = [v for v in movers if _is_starved(v)]
    if not starving:
        return ""
    got = starving[0].clock.cpu_percent if starving[0].clock is not None else None
    gets, wants = verb(starving, "gets", "get"), verb(starving, "wants", "want")
    return f"{names(starving)} {gets} {percent(got)} of a CPU and {wants} a whole one"


def _is_starved(rank: Rank) -> bool:
    clock = rank.clock
    if clock is None or clock.demand_percent is None or clock.cpu_percent is None:
        return False
    queued = rank.cpu_mark is not None and rank.cpu_mark.text.startswith("wants")
    low = clock.cpu_percent < 0.2 * clock.demand_percent
    return clock.demand_percent > 50 and low and (queued or rank.process.state == "R")


def _alone(context: Context, movers: list[Rank]) -> str:
    """Reached only when stacks show work: without them it is suspect."""
    alone = context.t - context.non_cpu_activity_t
    if not movers or alone < silence_limits.cpu_alone_s(context.phase, mixed=False):
        return ""
    return f"for {duration(alone)} nothing but CPU time has moved, and the stacks show work"


def _disk(context: Context, movers: list[Rank]) -> str:
    storage = [v for v in context.ranks if v.wait.kind is WaitKind.STORAGE and v.quiet_s(context.t) > FRESH_S]
    if storage and all(v in storage for v in movers):
        return f"{phrase(storage, storage[0].wait.text)}, nothing came for {since(context, storage[0].activity_t)}"
    load = load_of(context)
    reading = [v for v in movers if "bytes" in v.fresh(context.t)]
    idle = all((v.clock.demand_percent or 0) < 50 for v in movers if v.clock is not None)
    if load is not None and reading and idle and load.speed and load.speed < SLOW_BYTES_S:
        return f"the disk gives {rate(load.speed)} only"
    return ""


def _unusual(context: Context) -> str:
    """Against finished starts on this machine, where the history knows some."""
    if usual.is_late(context.snapshot):
        return "later than nine of ten starts on this machine"
    phase_s = dict(context.snapshot.usual_s).get(context.phase)
    begun = next((m.seen_t for m in context.snapshot.log.milestones if m.phase == context.phase), None)
    if phase_s and begun is not None and context.t - begun > max(1.5 * phase_s, phase_s + 30):
        return f"{since(context, begun)} so far, usually {duration(phase_s)} on this machine"
    return ""
