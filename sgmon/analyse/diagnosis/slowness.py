"""Why a start that moves is called slow: a starved CPU, a slow disk, or longer than usual on this machine."""

from __future__ import annotations

from sgmon.analyse.diagnosis import silence_limits, usual
from sgmon.analyse.diagnosis.context import Scene
from sgmon.analyse.diagnosis.facts import since
from sgmon.analyse.diagnosis.grammar import names, phrase, verb
from sgmon.analyse.diagnosis.load import load_of
from sgmon.analyse.diagnosis.ranks import FRESH_S, RankView
from sgmon.model import Mark
from sgmon.units import duration, percent, rate

#: bytes/s below which a load is called slow
SLOW_BYTES_S = 1024 * 1024


def slowness(scene: Scene, movers: list[RankView]) -> str:
    """The reason in words, or "" when it is not slow."""
    return _starved(movers) or _alone(scene, movers) or _disk(scene, movers) or _unusual(scene)


def _starved(movers: list[RankView]) -> str:
    """It wants a CPU and gets a fifth of it at most."""
    starving = [v for v in movers if _is_starved(v)]
    if not starving:
        return ""
    got = starving[0].clock.cpu_percent if starving[0].clock is not None else None
    gets, wants = verb(starving, "gets", "get"), verb(starving, "wants", "want")
    return f"{names(starving)} {gets} {percent(got)} of a CPU and {wants} a whole one"


def _is_starved(view: RankView) -> bool:
    clock = view.clock
    if clock is None or clock.demand_percent is None or clock.cpu_percent is None:
        return False
    queued = view.cpu_mark is not None and view.cpu_mark.text.startswith("wants")
    low = clock.cpu_percent < 0.2 * clock.demand_percent
    return clock.demand_percent > 50 and low and (queued or view.process.state == "R")


def _alone(scene: Scene, movers: list[RankView]) -> str:
    """Reached only when stacks show work: without them it is suspect."""
    alone = scene.t - scene.strong_life_t
    if not movers or alone < silence_limits.cpu_alone_s(scene.phase, mixed=False):
        return ""
    return f"for {duration(alone)} nothing but CPU time has moved, and the stacks show work"


def _disk(scene: Scene, movers: list[RankView]) -> str:
    storage = [v for v in scene.ranks if v.wait.kind == "storage" and v.quiet_s > FRESH_S]
    if storage and all(v in storage for v in movers):
        return f"{phrase(storage, storage[0].wait.text)}, nothing came for {since(scene, storage[0].life_t)}"
    load = load_of(scene)
    reading = [v for v in movers if any(_reads_now(v, m) for m in (v.clock.marks if v.clock is not None else ()))]
    idle = all((v.clock.demand_percent or 0) < 50 for v in movers if v.clock is not None)
    if load is not None and reading and idle and load.speed and load.speed < SLOW_BYTES_S:
        return f"the disk gives {rate(load.speed)} only"
    return ""


def _reads_now(view: RankView, mark: Mark) -> bool:
    return mark.signal == "bytes" and view.t - mark.t <= FRESH_S


def _unusual(scene: Scene) -> str:
    """Against finished starts on this machine, where the history knows some."""
    if usual.is_late(scene.snapshot):
        return "later than nine of ten starts on this machine"
    phase_s = dict(scene.snapshot.usual_s).get(scene.phase)
    begun = next((m.seen_t for m in scene.snapshot.log.milestones if m.phase == scene.phase), None)
    if phase_s and begun is not None and scene.t - begun > max(1.5 * phase_s, phase_s + 30):
        return f"{since(scene, begun)} so far, usually {duration(phase_s)} on this machine"
    return ""
