"""Progressing or slow: something moved within this phase's usual quiet time, and what."""

from __future__ import annotations

from sgmon.analyse.diagnosis import silence_limits, usual
from sgmon.analyse.diagnosis.clocks import clock_fact, kill_clocks
from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.facts import doing_fact, files_facts, log_fact, quiet_fact, since, wait_fact
from sgmon.analyse.diagnosis.grammar import phrase
from sgmon.analyse.diagnosis.load import load_fact, load_of
from sgmon.analyse.diagnosis.slowness import SlowKind, Slowness, is_starved, slowness
from sgmon.analyse.ranks.doing import doing
from sgmon.model import Bar, Evidence, NextStep, Rank, Verdict
from sgmon.model.rank import FRESH_S
from sgmon.units import duration, percent, rate

#: a bar that has not moved for this long is no headline
BAR_S = 60.0


def progress(context: Context) -> Verdict:
    """What the ranks do now. Called only when there was a sign of activity in time."""
    movers = [v for v in context.ranks if v.active(context.t)]
    slow = slowness(context, movers)
    headline = _headline(context, movers) if movers or not slow else context.phase_words
    return Verdict(
        "slow" if slow else "progressing",
        f"{headline}: {slow.text}" if slow else headline,
        phase=context.phase,
        confidence=_confidence(context, movers),
        rule="slow" if slow else "moving",
        evidence=_evidence(context, movers),
        next=_steps(context, slow),
    )


def cpu_alone(context: Context) -> float | None:
    """Seconds that CPU time has been the only sign of activity, when that is too long to believe; else None."""
    alone = context.quiet_but_cpu_s
    mixed = any(v.active(context.t) and _may_spin(v) for v in context.ranks) and not all(
        v.active(context.t) for v in context.ranks
    )
    works = any(v.stack is not None and (v.stack.works or v.stack.moving) for v in context.ranks)
    shares = [v.clock.cpu_share_alone for v in context.ranks if v.clock is not None and v.active(context.t)]
    share = max((one for one in shares if one is not None), default=1.0)
    phase = context.phases.of(context.phase)
    if context.guessed_long:  # it may be any of them
        phase = max(context.phases.phases, key=lambda one: one.cpu_alone_s)
    limit_s = silence_limits.cpu_alone_s(phase, mixed=mixed, share=share)
    return alone if alone >= limit_s and not works else None


def _may_spin(rank: Rank) -> bool:
    """Its GPU's utilisation is not known: nothing tells work from spinning."""
    return rank.clock is None or rank.clock.gpu_util_min is None


def _headline(context: Context, movers: list[Rank]) -> str:
    stage = context.phase_words
    moving = set(map(id, movers))  # of 512 ranks, each compared with each by value took 10 ms
    rest = [v for v in context.ranks if id(v) not in moving]
    tail = f"; {phrase(rest, 'waits')} for it" if movers and rest else ""
    compiling = [v for v in movers if doing(v, context.t).signal == "compiler"]
    if compiling:
        others = [v for v in context.ranks if v not in compiling]
        tail = (
            f"; {phrase(others, 'waits')} for it" if others and not any(v.active(context.t) for v in others) else ""
        )
        return f"{stage}: {phrase(compiling, 'compiles')} kernels{tail}"
    works = _somebody_works(context, movers)
    counted = _load_words(context, works=works) or _bar_words(context)
    if counted:
        return f"{stage}: {counted}" if works else f"{stage}: {counted}, {_quiet(context)}"
    importing = [v for v in movers if v.importing]
    if importing and context.phase in ("launch", "spawn", "dist_init"):
        return phrase(importing, "imports its modules")
    if context.phase == "launch" and movers:
        return "the launcher imports its modules and reads its arguments"
    if not movers and context.t - context.files_t <= FRESH_S:
        return f"{stage}: a watched folder grows"
    if not movers and context.t - context.helpers_t <= FRESH_S:
        return f"{stage}: the launcher and its helpers work"
    if not movers:
        return f"{stage}: {_quiet(context)}"
    return f"{stage}: {_what_they_do(movers, context.t)}{tail}"


def _somebody_works(context: Context, movers: list[Rank]) -> bool:
    """Whether a rank is active, or something else that counts: a watched folder, a helper."""
    return bool(movers) or context.t - max(context.files_t, context.helpers_t) <= FRESH_S


def _quiet(context: Context) -> str:
    """ "quiet for 10s, suspect after 15s"."""
    return f"quiet for {since(context, context.activity_t)}, suspect after {duration(context.limits().suspect_s)}"


def _what_they_do(movers: list[Rank], t: float) -> str:
    """Who does what: the first two things, then who else is active."""
    groups: dict[str, list[Rank]] = {}
    for rank in _with_a_sign(movers, t):
        groups.setdefault(doing(rank, t).verb, []).append(rank)
    parts = [_together(verb, ranks, t) for verb, ranks in list(groups.items())[:2]]
    others = [rank for ranks in list(groups.values())[2:] for rank in ranks]
    parts += [phrase(others, "is active")] if others else []
    return ", ".join(parts)


def _together(verb: str, ranks: list[Rank], t: float) -> str:
    """ "TP0-1 compute (TP0: CPU 56% of a core)": what is of one rank is said of that one alone."""
    details = [doing(rank, t).detail for rank in ranks]
    if not any(details):
        return phrase(ranks, verb)
    if all(detail == details[0] for detail in details):
        return f"{phrase(ranks, verb)} {details[0]}"
    one, detail = next((rank, detail) for rank, detail in zip(ranks, details, strict=True) if detail)
    detail = detail[1:-1] if detail.startswith("(") else detail
    return f"{phrase(ranks, verb)} ({one.label}: {detail})"


def _with_a_sign(movers: list[Rank], t: float) -> list[Rank]:
    """Those of which a sign of activity was seen; all where none was: who was first seen just now may be active."""
    return [v for v in movers if (mark := v.last_mark) is not None and t - mark.t <= FRESH_S] or movers


def _load_words(context: Context, *, works: bool) -> str:
    """ "27%, 507 MiB/s, 22s to go"; without the speed where nobody works now; "" outside of the weight load or when
    nothing was counted."""
    load = load_of(context)
    if load is None:
        return ""
    parts = [percent(load.share * 100)] if load.share is not None else []
    if not works:
        return ", ".join(parts)
    parts += [rate(load.speed)] if load.speed and load.speed > 1e5 else []
    parts += [f"{duration(load.eta_s)} to go"] if load.eta_s and load.eta_s > 2 else []
    return ", ".join(parts)


def _bar_words(context: Context) -> str:
    """ "16 of 36" graphs; "" without a bar."""
    bar = _bar(context)
    return "" if bar is None else f"{bar.done} of {bar.total}"


def _bar(context: Context) -> Bar | None:
    """The unfinished bar of this phase, if it moved lately."""
    stem = {"weights": "weights", "graphs": "graph"}.get(context.phase.removeprefix("draft_"), "jit")
    for bar in reversed(context.snapshot.log.bars):
        fits = stem in bar.name or "jit" in bar.name
        if fits and not bar.finished and bar.total and bar.moved_t is not None and context.t - bar.moved_t < BAR_S:
            return bar
    return None


def _evidence(context: Context, movers: list[Rank]) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    load = load_of(context)
    if load is not None and (load.done_bytes or load.share is not None or load.why):
        found.append(load_fact(load))
    found += files_facts(context)
    found += [doing_fact(context, v) for v in _with_a_sign(movers, context.t)[:2]]
    waiters = [v for v in context.ranks if not v.active(context.t)]
    if waiters:
        found.append(wait_fact(context, waiters[0]) if waiters[0].wait.text else quiet_fact(context, waiters[0]))
    throttled = context.snapshot.procs.throttled
    if throttled and any(is_starved(v) for v in movers):
        found.insert(0, Evidence("cgroup", f"the CPU quota has stopped it {throttled} times (cpu.stat nr_throttled)"))
    past = usual.words(context.snapshot)
    if past:
        found.append(Evidence("history", past))
    for clock in kill_clocks(context)[:1]:
        if clock.left_s < clock.limit_s / 2:
            found.append(clock_fact(clock))
    found.append(log_fact(context))
    return tuple(found[:5])


def _confidence(context: Context, movers: list[Rank]) -> float:
    if any((mark := v.non_cpu_mark) is not None and context.t - mark.t <= FRESH_S for v in movers):
        return 0.95
    return 0.6 if movers else 0.7


def _steps(context: Context, slow: Slowness | None) -> tuple[NextStep, ...]:
    if slow is not None and slow.kind is SlowKind.CPU and context.snapshot.procs.throttled and context.ranks:
        group = f"/sys/fs/cgroup$(tail -n 1 /proc/{context.ranks[0].pid}/cgroup | cut -d: -f3)"
        return (NextStep("See the CPU quota, and how often it stopped the server", f"cat {group}/cpu.{{max,stat}}"),)
    if slow is not None and slow.kind is SlowKind.CPU:
        return (NextStep("See who takes the CPUs", "top -b -n 1 | head -n 20"),)
    if slow is not None and slow.kind is SlowKind.STORAGE:
        return (NextStep("See what the disk does", "iostat -x 2 3"),)
    return ()
