"""Suspect and stalled: nothing moved for longer than this phase may be quiet, and who is to blame."""

from __future__ import annotations

from sgmon.diagnosis import quiet
from sgmon.diagnosis.clocks import clock_fact
from sgmon.diagnosis.facts import STEP_STACKS, dump_step, log_fact, names, quiet_fact, ranks_of, since, wait_fact
from sgmon.diagnosis.peers import Line, line_up
from sgmon.diagnosis.phase import words
from sgmon.diagnosis.ranks import RankView
from sgmon.diagnosis.ready import foreign_holder
from sgmon.diagnosis.scene import Scene
from sgmon.model import Evidence, NextStep, Verdict
from sgmon.units import plural

#: a line-up this sure is positive evidence: the usual quiet of the phase is no excuse any more
CERTAIN = 0.7


def storage(scene: Scene) -> Verdict | None:
    """A rank asleep on a page for longer than the slowest disk looks dead, whether others move or not."""
    limit = quiet.disk_quantum_s(scene.snapshot.procs.read_ahead_bytes)
    stuck = [v for v in scene.ranks if v.wait.kind == "storage" and v.quiet_s >= limit / 2]
    if not stuck:
        return None
    longest = max(v.quiet_s for v in stuck)
    state = "stalled" if longest >= limit else "suspect"
    if state == "suspect" and any(v.moves for v in scene.ranks if v not in stuck):
        return None
    first = stuck[0]
    return Verdict(
        state,
        f"{names(stuck)} {first.wait.text}; not a byte came for {since(scene, first.life_t)}",
        phase=scene.phase,
        since_t=min(v.life_t for v in stuck),
        confidence=0.9 if state == "stalled" else 0.6,
        rule="storage",
        odd_ranks=ranks_of(stuck),
        evidence=(
            Evidence("proc", f"{first.name} (pid {first.pid}): {first.where()}", first.rank, first.pid),
            Evidence(
                "bytes", f"neither read_bytes nor mapped pages moved for {since(scene, first.life_t)}", first.rank
            ),
            log_fact(scene),
        ),
        next=(
            NextStep("Look at the mount without touching it", "grep -E ' (nfs|fuse|lustre|ceph)' /proc/mounts"),
            NextStep("Read the kernel's word on it (as root)", f"cat /proc/{first.pid}/stack"),
        ),
    )


def stale_lock(scene: Scene) -> Verdict | None:
    """Ranks poll a lock file that nobody holds, and nobody compiles: the lock of a build that was killed."""
    waiting = [v for v in scene.ranks if v.wait.kind == "baton" and not v.moves]
    if not waiting or any(v.moves for v in scene.ranks):
        return None
    rest = [v for v in scene.ranks if v not in waiting and not v.waits_for_peer and v.wait.kind != "futex"]
    limits = scene.limits(certain=not rest)
    if scene.quiet_s < limits.suspect_s:
        return None
    first = waiting[0]
    where = first.wait.target or "a lock file"
    return Verdict(
        "stalled" if scene.quiet_s >= limits.stalled_s else "suspect",
        f"{names(waiting)} waits for {where}, which no live process holds: the lock of a build that was killed",
        phase=scene.phase,
        since_t=scene.life_t,
        confidence=0.85,
        rule="stale-lock",
        odd_ranks=ranks_of(waiting),
        evidence=(
            wait_fact(first),
            Evidence("compiler", "no compiler runs anywhere below the server"),
            log_fact(scene),
        ),
        next=(
            NextStep("Make sure that nothing builds, then remove it", f"rm {where}" if first.wait.target else ""),
            dump_step(first),
        ),
    )


def still(scene: Scene) -> Verdict | None:
    """No sign of life for too long: suspect, then stalled; with the culprit where it can be told."""
    line = line_up(scene)
    if line is not None and any(v.moves for v in line.culprits):
        line = None  # the awaited rank works: slow, not hung
    certain = line is not None and line.sure >= CERTAIN
    limits = scene.limits(certain=certain)
    if scene.quiet_s < limits.suspect_s:
        return None
    evidence = _evidence(scene, line)
    stalled = scene.quiet_s >= limits.stalled_s and not scene.blind and len({e.signal for e in evidence}) >= 2
    return Verdict(
        "stalled" if stalled else "suspect",
        _headline(scene, line),
        phase=scene.phase,
        since_t=scene.life_t,
        confidence=_confidence(scene, line, stalled),
        rule="peer-missing" if line is not None else "quiet",
        odd_ranks=ranks_of(line.culprits) if line is not None else (),
        evidence=evidence,
        next=_steps(scene, line),
    )


def busy_for_nothing(scene: Scene, alone_s: float) -> Verdict:
    """CPU time alone has moved for very long: computing and spinning look alike from outside."""
    busy = [v for v in scene.ranks if v.cpu_mark is not None and v.moves]
    first = (busy or list(scene.ranks))[0]
    return Verdict(
        "suspect",
        f"{words(scene.phase)}: for {since(scene, scene.t - alone_s)} only CPU time has moved; "
        f"{names(busy) if busy else 'nobody'} computes, or spins",
        phase=scene.phase,
        since_t=scene.strong_life_t,
        confidence=0.4,
        rule="cpu-alone",
        odd_ranks=(),
        evidence=(quiet_fact(first), log_fact(scene)),
        next=(STEP_STACKS, dump_step(first)),
    )


def _headline(scene: Scene, line: Line | None) -> str:
    stage = words(scene.phase)
    lasted = since(scene, scene.life_t)
    if line is not None:
        verb = "waits" if len(line.waiters) == 1 else "wait"
        who = f"{plural(len(line.waiters), 'rank')} {verb} for it"
        if len(line.culprits) > 1:
            who = f"{plural(len(line.waiters), 'rank')} {verb} for them"
        return f"{names(line.culprits)} {_absence(scene, line)} in the {stage}; {who}, {lasted} now"
    if all(v.waits_for_peer for v in scene.ranks) and len(scene.ranks) > 1:
        spin = "spin" if all(v.wait.kind == "gpu-spin" for v in scene.ranks) else "wait"
        return f"all {len(scene.ranks)} ranks {spin} in a collective in the {stage} and no data moves, {lasted} now"
    if len(scene.ranks) == 1:
        only = scene.ranks[0]
        return f"{only.name} has stood still in the {stage} for {lasted}: it {only.doing()}"
    return f"nothing has moved in the {stage} for {lasted}, on any of {plural(len(scene.ranks), 'rank')}"


def _absence(scene: Scene, line: Line) -> str:
    if all(v.importing for v in line.culprits):
        return "is still importing and does nothing"
    first = line.culprits[0]
    if first.wait.kind in ("lock", "baton", "storage", "dns", "log-reader"):
        return first.wait.text + " and is missing from the collective"
    return "is missing from the collective"


def _evidence(scene: Scene, line: Line | None) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    if line is not None:
        found.append(quiet_fact(line.culprits[0]))
        found += [wait_fact(v) if v.wait.text else quiet_fact(v) for v in line.waiters[:1]]
        found.append(Evidence("peers", f"{names(line.culprits)}: {line.why}"))
    else:
        found += [quiet_fact(v) for v in scene.ranks[:2]]
    found.append(log_fact(scene))
    port = foreign_holder(scene)
    clock = clock_fact(scene)
    found += [e for e in (clock, port) if e is not None]
    return tuple(found[:5])


def _confidence(scene: Scene, line: Line | None, stalled: bool) -> float:
    base = line.sure if line is not None else 0.7
    if scene.blind:
        return 0.3
    return round(base if stalled else base * 0.7, 2)


def _steps(scene: Scene, line: Line | None) -> tuple[NextStep, ...]:
    views: list[RankView] = list(line.culprits) if line is not None else list(scene.ranks)
    return tuple([dump_step(v) for v in views[:1]] + [STEP_STACKS])
