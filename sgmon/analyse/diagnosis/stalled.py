"""Suspect and stalled: nothing moved for longer than this phase may be quiet, and who is to blame."""

from __future__ import annotations

from collections.abc import Sequence

from sgmon.analyse.diagnosis import silence_limits, usual
from sgmon.analyse.diagnosis.blame import Line, line_up
from sgmon.analyse.diagnosis.clocks import clock_fact
from sgmon.analyse.diagnosis.context import Scene
from sgmon.analyse.diagnosis.facts import STEP_STACKS, dump_step, files_facts, log_fact, quiet_fact, since, wait_fact
from sgmon.analyse.diagnosis.grammar import names, phrase, ranks_of, verb
from sgmon.analyse.diagnosis.phase import during, words
from sgmon.analyse.diagnosis.ranks import RankView
from sgmon.analyse.diagnosis.ready import foreign_holder
from sgmon.model import Evidence, NextStep, Verdict
from sgmon.units import plural

#: a line-up this sure is positive evidence: the usual quiet of the phase is no excuse any more
CERTAIN = 0.7


def storage(scene: Scene) -> Verdict | None:
    """A rank asleep on a page for longer than the slowest disk looks dead, whether others move or not."""
    limit = silence_limits.disk_quantum_s(scene.snapshot.procs.read_ahead_bytes)
    suspect_s = max(limit / 2, min(scene.limits().suspect_s, limit))
    stuck = [v for v in scene.ranks if v.wait.kind == "storage" and _asleep_s(v) >= suspect_s]
    if not stuck:
        return None
    longest = max(_asleep_s(v) for v in stuck)
    if longest < limit and any(v.moves for v in scene.ranks):
        return None
    first = max(stuck, key=lambda v: v.quiet_s)
    return Verdict(
        "stalled" if longest >= limit else "suspect",
        f"{phrase(stuck, first.wait.text)}; not a byte comes",
        phase=first.phase,
        since_t=first.life_t,
        confidence=0.9 if longest >= limit else 0.6,
        rule="storage",
        odd_ranks=ranks_of(stuck),
        evidence=(
            Evidence("proc", f"{first.name} (pid {first.pid}): {first.where()}", first.rank, first.pid),
            Evidence("bytes", f"no byte read, no page mapped for {since(scene, first.life_t)}", first.rank),
            log_fact(scene),
        ),
        next=(
            NextStep(
                "Look at the mount without touching it", "grep -E ' (nfs4?|fuse[.a-z]*|lustre|ceph) ' /proc/mounts"
            ),
            NextStep("Read where the kernel holds it (as root)", f"cat /proc/{first.pid}/stack"),
        ),
    )


def _asleep_s(view: RankView) -> float:
    """For how long it has been asleep on storage: quiet, and in that state at every look."""
    since_t = view.clock.state_since_t if view.clock is not None else None
    return min(view.quiet_s, view.t - since_t) if since_t is not None else view.quiet_s


def stale_lock(scene: Scene) -> Verdict | None:
    """Ranks poll a lock file that nobody holds, and nobody compiles: the lock of a build that was killed."""
    waiting = [v for v in scene.ranks if v.wait.kind == "baton" and not v.moves]
    if not waiting or any(v.moves for v in scene.ranks):
        return None
    rest = [
        v for v in scene.ranks if v not in waiting and not v.waits_for_peer and v.wait.kind not in ("futex", "idle")
    ]
    limits = scene.limits(certain=not rest)
    if scene.quiet_s < limits.suspect_s:
        return None
    first = waiting[0]
    where = first.wait.target or "a lock file"
    return Verdict(
        "stalled" if scene.quiet_s >= limits.stalled_s else "suspect",
        f"{phrase(waiting, f'waits for {where}')}, which no live process holds: the lock of a build that was killed",
        phase=first.phase,
        since_t=scene.life_t,
        confidence=0.85 if first.wait.target else 0.7,
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
    if scene.quiet_s < silence_limits.SUSPECT_S:
        return None
    line = line_up(scene)
    if line is not None and any(v.moves for v in line.culprits):
        line = None  # the awaited rank works: slow, not hung
    certain = line is not None and line.sure >= CERTAIN
    limits = scene.limits(certain=certain)
    blamed: Sequence[RankView] = line.culprits if line is not None else scene.ranks
    if scene.quiet_s < limits.suspect_s or any(v.wait.kind == "storage" for v in blamed):
        return None  # storage has a clock of its own: a slow disk looks dead for long
    evidence = _evidence(scene, line)
    stalled = scene.quiet_s >= limits.stalled_s and not scene.blind and len({e.signal for e in evidence}) >= 2
    return Verdict(
        "stalled" if stalled else "suspect",
        _headline(scene, line),
        phase=line.culprits[0].phase if line is not None else scene.phase,
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
        f"{words(scene.phase)}: nothing but CPU time moves; "
        f"{names(busy) if busy else 'nobody'} {verb(busy, 'computes, or spins', 'compute, or spin')}",
        phase=scene.phase,
        since_t=scene.strong_life_t,
        confidence=0.4,
        rule="cpu-alone",
        evidence=(
            quiet_fact(first),
            Evidence("cpu", f"CPU time is all that has moved for {since(scene, scene.t - alone_s)}"),
            log_fact(scene),
        ),
        next=(STEP_STACKS, dump_step(first)),
    )


def _headline(scene: Scene, line: Line | None) -> str:
    if line is not None:
        stage = during(line.culprits[0].phase)
        who = plural(len(line.waiters), "other rank")
        waits = f"{who} {verb(line.waiters, 'waits', 'wait')} for {verb(line.culprits, 'it', 'them')}"
        return f"{_absence(line)} {stage}; {waits}"
    stage = during(scene.phase)
    if scene.blind:
        return f"no counter of any rank can be read, and the log is silent {stage}"
    if all(v.waits_for_peer for v in scene.ranks) and len(scene.ranks) > 1:
        spin = "spin" if all(v.wait.kind == "gpu-spin" for v in scene.ranks) else "wait"
        nodes = ", this node's at least," if scene.args.nnodes > 1 else ""
        return f"all {len(scene.ranks)} ranks{nodes} {spin} in a collective {stage}: no data moves"
    if len(scene.ranks) == 1:
        only = scene.ranks[0]
        works = only.stack is not None and only.stack.kind == "work"
        what = f", in {only.stack.frame}" if works and only.stack is not None else f": it {only.doing()}"
        return f"{only.name} stands still {stage}{what}"
    return f"nothing moves {stage}, on any of {plural(len(scene.ranks), 'rank')}"


def _absence(line: Line) -> str:
    late = line.culprits
    if all(v.importing for v in late):
        return f"{phrase(late, 'is')} stuck importing modules, and missing from the rendezvous"
    first = late[0]
    if first.wait.kind in ("lock", "baton", "dns", "connect", "network", "log-reader"):
        return phrase(late, first.wait.text)
    at = (
        f" (it stands in {first.stack.frame})"
        if len(late) == 1 and first.stack and first.stack.kind == "work"
        else ""
    )
    return f"{phrase(late, 'is')} missing from the collective{at}"


def _evidence(scene: Scene, line: Line | None) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    if line is not None:
        first = line.culprits[0]
        found.append(quiet_fact(first))
        stack = _stack_fact(first)
        found += [stack] if stack is not None else []
        found += [wait_fact(v) if v.wait.text else quiet_fact(v) for v in line.waiters[:1]]
        found.append(Evidence(line.signal, f"{names(line.culprits)}: {line.why}"))
    else:
        found += [quiet_fact(v) for v in scene.ranks[:2]]
        found += [_stack_fact(v) or wait_fact(v) for v in scene.ranks[:1] if v.wait.text or v.stack is not None]
    found.append(log_fact(scene))
    past = usual.words(scene.snapshot)
    history = Evidence("history", past) if past else None
    extra = [e for e in (clock_fact(scene), history, foreign_holder(scene)) if e is not None]
    extra = [*files_facts(scene)[:1], *extra[:1]]
    return (*found[: 5 - len(extra)], *extra)


def _stack_fact(view: RankView) -> Evidence | None:
    if view.stack is None:
        return None
    same = "" if view.stack.moving else ", the same at every look"
    return Evidence("stack", f"{view.name} stands in {view.stack.frame}{same}", view.rank, view.pid)


def _confidence(scene: Scene, line: Line | None, stalled: bool) -> float:
    sure = line.sure if line is not None else 0.7
    if scene.blind:
        return 0.3
    return round(sure if stalled else sure * 0.7, 2)


def _steps(scene: Scene, line: Line | None) -> tuple[NextStep, ...]:
    views: Sequence[RankView] = line.culprits if line is not None else scene.ranks
    return (*(dump_step(v) for v in views[:1]), STEP_STACKS)
