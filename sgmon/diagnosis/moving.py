"""Progressing or slow: something moved within this phase's usual quiet time, and what."""

from __future__ import annotations

from sgmon.diagnosis import quiet
from sgmon.diagnosis.clocks import kill_clocks
from sgmon.diagnosis.facts import doing_fact, log_fact, names, quiet_fact, since, wait_fact
from sgmon.diagnosis.load import load_fact, load_of
from sgmon.diagnosis.phase import words
from sgmon.diagnosis.ranks import RankView, starved
from sgmon.diagnosis.ready import foreign_holder
from sgmon.diagnosis.scene import Scene
from sgmon.model import Bar, Evidence, NextStep, Verdict
from sgmon.units import duration, percent, rate

#: bytes/s below which a load is called slow
SLOW_BYTES_S = 1024 * 1024


def moving(scene: Scene) -> Verdict:
    """What the ranks do now. Called only when there was a sign of life in time."""
    movers = [v for v in scene.ranks if v.moves]
    waiters = [v for v in scene.ranks if not v.moves]
    slow = _slowness(scene, movers)
    headline = _headline(scene, movers)
    if slow:
        headline += f": {slow}"
    evidence: list[Evidence] = []
    port = foreign_holder(scene)
    if port is not None:
        evidence.append(port)
    load = load_of(scene)
    if load is not None:
        evidence.append(load_fact(load))
    evidence += [doing_fact(v) for v in movers[:2]]
    if waiters and movers:
        evidence.append(wait_fact(waiters[0]) if waiters[0].wait.text else quiet_fact(waiters[0]))
    for clock in kill_clocks(scene)[:1]:
        if clock.left_s < clock.limit_s / 2:
            evidence.append(Evidence("clock", clock.text(), value=round(clock.left_s, 1)))
    evidence.append(log_fact(scene))
    return Verdict(
        "slow" if slow else "progressing",
        headline,
        phase=scene.phase,
        confidence=_confidence(scene, movers),
        rule="slow" if slow else "moving",
        evidence=tuple(evidence[:5]),
        next=_steps(slow),
    )


def cpu_alone(scene: Scene) -> float | None:
    """Seconds that CPU time has been the only sign of life, when that is too long to believe; else None."""
    alone = scene.t - scene.strong_life_t
    mixed = any(v.moves for v in scene.ranks) and not all(v.moves for v in scene.ranks)
    works = any(v.stack is not None and (v.stack.kind == "work" or v.stack.moving) for v in scene.ranks)
    return alone if alone >= quiet.cpu_alone_s(scene.phase, mixed=mixed) and not works else None


def _headline(scene: Scene, movers: list[RankView]) -> str:
    stage = words(scene.phase)
    compiling = [v for v in movers if "compiles" in v.doing()]
    if compiling:
        others = [v for v in scene.ranks if v not in compiling]
        tail = f"; {names(others)} waits for it" if others and not any(v.moves for v in others) else ""
        return f"{stage}: {names(compiling)} compiles kernels{tail}"
    load = load_of(scene)
    if load is not None and (load.share is not None or load.speed):
        parts = [percent(load.share * 100)] if load.share is not None else []
        parts += [rate(load.speed)] if load.speed and load.speed > 1e5 else []
        parts += [f"{duration(load.eta_s)} to go"] if load.eta_s and load.eta_s > 2 else []
        if parts:
            return f"{stage}: {', '.join(parts)}"
    bar = _bar(scene)
    if bar is not None:
        return f"{stage}: {bar.done} of {bar.total}"
    importing = [v for v in movers if v.importing]
    if importing and scene.phase in ("launch", "spawn", "dist_init"):
        plural = len(importing) > 1
        return f"{names(importing)} {'import their' if plural else 'imports its'} modules"
    if scene.phase == "launch" and movers:
        return "the launcher imports its modules and reads its arguments"
    if movers:
        return (
            f"{stage}: {names(movers)} {movers[0].doing()}" if len(movers) < len(scene.ranks) else f"{stage} goes on"
        )
    return f"{stage}: quiet for {since(scene, scene.life_t)}, which is usual here"


def _bar(scene: Scene) -> Bar | None:
    """The unfinished bar of this phase, if it moved lately."""
    stem = {"weights": "weights", "graphs": "graph", "warmup": "jit"}.get(quiet.base(scene.phase), "jit")
    for bar in reversed(scene.snapshot.log.bars):
        fits = stem in bar.name or "jit" in bar.name
        if fits and not bar.finished and bar.total and bar.moved_t is not None and scene.t - bar.moved_t < 60:
            return bar
    return None


def _slowness(scene: Scene, movers: list[RankView]) -> str:
    """Why it is slow, or "" when it is not."""
    starving = [v for v in movers if starved(v)]
    if starving:
        got = starving[0].clock.cpu_percent if starving[0].clock is not None else None
        return f"{names(starving)} gets {percent(got)} of a CPU and wants a whole one"
    alone = scene.t - scene.strong_life_t
    if movers and alone >= quiet.cpu_alone_s(scene.phase, mixed=False):
        return f"for {duration(alone)} only CPU time has moved, and the stacks show work"
    storage = [v for v in scene.ranks if v.wait.kind == "storage" and not v.moves]
    if storage and not [v for v in movers if v not in storage]:
        return f"{names(storage)} {storage[0].wait.text}; nothing came for {since(scene, storage[0].life_t)}"
    load = load_of(scene)
    reading = [v for v in movers if v.clock is not None and any(m.signal == "bytes" for m in v.clock.marks[:2])]
    if load is not None and reading and load.speed and load.speed < SLOW_BYTES_S and _only_bytes(movers):
        return f"the disk gives {rate(load.speed)} only"
    usual = dict(scene.snapshot.usual_s).get(scene.phase)
    begun = _phase_begin(scene)
    if usual and begun is not None and scene.t - begun > max(1.5 * usual, usual + 30):
        return f"{since(scene, begun)} so far, usually {duration(usual)} on this machine"
    return ""


def _only_bytes(movers: list[RankView]) -> bool:
    return all((v.clock.demand_percent or 0) < 50 for v in movers if v.clock is not None)


def _phase_begin(scene: Scene) -> float | None:
    return next((m.seen_t for m in scene.snapshot.log.milestones if m.phase == scene.phase), None)


def _confidence(scene: Scene, movers: list[RankView]) -> float:
    if any(v.strong_quiet_s <= 6 for v in movers):
        return 0.95
    return 0.6 if movers else 0.7


def _steps(slow: str) -> tuple[NextStep, ...]:
    if "CPU" in slow:
        return (NextStep("See who takes the CPUs", "top -b -n 1 | head -n 20"),)
    if slow:
        return (NextStep("See what the disk does", "iostat -x 2 3"),)
    return ()
