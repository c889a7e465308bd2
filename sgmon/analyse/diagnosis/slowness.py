"""Why a start that moves is called slow: a starved CPU, a slow disk, or longer than usual on this machine."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from sgmon.analyse.diagnosis import silence_limits, usual
from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.facts import since
from sgmon.analyse.diagnosis.grammar import names, phrase, verb
from sgmon.analyse.diagnosis.load import load_of
from sgmon.model import Rank, WaitKind
from sgmon.model.rank import FRESH_S
from sgmon.units import duration, lasting, percent, plural, rate

#: bytes/s below which a load is called slow
SLOW_BYTES_S = 1024 * 1024


class SlowKind(str, Enum):
    """Why a start is slow: it gets no CPU; only CPU time moves; storage; longer than usual on this machine."""

    CPU = "cpu"
    CPU_ALONE = "cpu-alone"
    STORAGE = "storage"
    UNUSUAL = "unusual"


class Slowness(NamedTuple):
    """Why it is slow, and the same in words."""

    kind: SlowKind
    text: str


def slowness(context: Context, movers: list[Rank]) -> Slowness | None:
    """The first reason; None when it is not slow."""
    return _starved(movers) or _alone(context, movers) or _disk(context, movers) or _unusual(context)


def _starved(movers: list[Rank]) -> Slowness | None:
    """It wants a CPU and gets a fifth of it at most."""
    starving = [v for v in movers if is_starved(v)]
    if not starving:
        return None
    got = starving[0].clock.cpu_percent if starving[0].clock is not None else None
    are, each = verb(starving, "is", "are"), verb(starving, "", " each")
    return Slowness(SlowKind.CPU, f"{names(starving)} {are} CPU-starved ({percent(got)} of a core{each})")


def is_starved(rank: Rank) -> bool:
    """It wants a CPU, and gets a fifth of it at most."""
    clock = rank.clock
    if clock is None or clock.demand_percent is None or clock.cpu_percent is None:
        return False
    queued = rank.cpu_mark is not None and rank.cpu_mark.queued
    low = clock.cpu_percent < 0.2 * clock.demand_percent
    return clock.demand_percent > 50 and low and (queued or rank.process.state == "R")


def _alone(context: Context, movers: list[Rank]) -> Slowness | None:
    """Reached only when stacks show work: without them it is suspect."""
    alone = context.quiet_but_cpu_s
    if not movers or alone < silence_limits.cpu_alone_s(context.phases.of(context.phase), mixed=False):
        return None
    text = f"for {lasting(alone)} no activity but CPU time, and the stacks show work"
    return Slowness(SlowKind.CPU_ALONE, text)


def _disk(context: Context, movers: list[Rank]) -> Slowness | None:
    storage = [v for v in context.ranks if v.wait.kind is WaitKind.STORAGE and v.quiet_s(context.t) > FRESH_S]
    if storage and all(v in storage for v in movers):
        text = f"{phrase(storage, storage[0].wait.text)}, nothing came for {since(context, storage[0].activity_t)}"
        return Slowness(SlowKind.STORAGE, text)
    load = load_of(context)
    reading = [v for v in movers if "bytes" in v.fresh(context.t)]
    idle = all((v.clock.demand_percent or 0) < 50 for v in movers if v.clock is not None)
    if load is not None and reading and idle and load.speed and load.speed < SLOW_BYTES_S:
        return Slowness(SlowKind.STORAGE, f"the disk delivers only {rate(load.speed)}")
    return None


def _unusual(context: Context) -> Slowness | None:
    """Against finished starts on this machine, where the history knows some."""
    late = usual.late_words(context.snapshot)
    if late:
        return Slowness(SlowKind.UNUSUAL, late)
    phase_s = dict(context.snapshot.usual_s).get(context.phase)
    begun = next(
        (context.snapshot.passed_t(m) for m in context.snapshot.log.milestones if m.phase == context.phase), None
    )
    if phase_s and begun is not None and context.t - begun > max(1.5 * phase_s, phase_s + 30):
        text = f"{since(context, begun)} so far, usually {duration(phase_s)} on this machine{_of(context)}"
        return Slowness(SlowKind.UNUSUAL, text)
    return None


def _of(context: Context) -> str:
    """ " (10 starts)"; "" where it is not known of how many."""
    base = context.snapshot.baseline
    return f" ({plural(base.count, 'start')})" if base is not None else ""
