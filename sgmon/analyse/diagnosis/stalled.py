"""Suspect and stalled: nothing moved for longer than this phase may be quiet, and who is to blame."""

from __future__ import annotations

from collections.abc import Sequence

from sgmon.analyse.diagnosis import silence_limits, usual
from sgmon.analyse.diagnosis.blame import Blame, find_blame
from sgmon.analyse.diagnosis.clocks import clock_fact, kill_clocks
from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.facts import (
    STEP_STACKS,
    dump_step,
    files_facts,
    log_fact,
    position_fact,
    quiet_fact,
    since,
    wait_fact,
)
from sgmon.analyse.diagnosis.foreseen import certain
from sgmon.analyse.diagnosis.grammar import names, phrase, ranks_of, verb
from sgmon.analyse.ranks.doing import doing, where
from sgmon.model import Evidence, NextStep, Rank, Verdict, WaitKind
from sgmon.text import quoted
from sgmon.units import lasting, plural

#: a blame this sure is positive evidence: the usual silence of the phase is no excuse any more
CERTAIN = 0.7
#: waits of its own that explain why a rank is missing
_OWN_WAITS = frozenset(
    {
        WaitKind.LOCK,
        WaitKind.STALE_LOCK,
        WaitKind.DNS,
        WaitKind.CONNECT,
        WaitKind.NETWORK,
        WaitKind.LOG_READER,
    }
)


def storage(context: Context) -> Verdict | None:
    """A rank asleep on a page for longer than the slowest disk looks dead, whether others move or not."""
    limit = silence_limits.disk_quantum_s(context.snapshot.procs.read_ahead_bytes)
    suspect_s = max(limit / 2, min(context.limits().suspect_s, limit))
    stuck = [v for v in context.ranks if v.wait.kind is WaitKind.STORAGE and _asleep_s(context, v) >= suspect_s]
    if not stuck:
        return None
    longest = max(_asleep_s(context, v) for v in stuck)
    if longest < limit and any(v.active(context.t) for v in context.ranks):
        return None
    first = max(stuck, key=lambda v: v.quiet_s(context.t))
    return Verdict(
        "stalled" if longest >= limit else "suspect",
        f"{phrase(stuck, first.wait.text)}; not a byte comes",
        phase=first.phase,
        since_t=first.activity_t,
        confidence=0.9 if longest >= limit else 0.6,
        rule="storage",
        odd_ranks=ranks_of(context, stuck),
        evidence=(
            _asleep_fact(first),
            Evidence("bytes", f"no byte read, no page mapped for {since(context, first.activity_t)}", first.name),
            *_position(context, first),
            log_fact(context),
        ),
        next=(
            NextStep(
                "Look at the mount without touching it", "grep -E ' (nfs4?|fuse[.a-z]*|lustre|ceph) ' /proc/mounts"
            ),
            NextStep("Read where the kernel holds it (as root)", f"cat /proc/{_task(first)}/stack"),
        ),
    )


def _position(context: Context, rank: Rank) -> tuple[Evidence, ...]:
    found = position_fact(context, rank)
    return () if found is None else (found,)


def _asleep_fact(rank: Rank) -> Evidence:
    """ "TP1 (pid 7): state D, folio_wait_bit_common"; of another thread: which, where, for how long."""
    thread = next((one for one in rank.process.thread_waits if one.tid == rank.wait.tid), None)
    text = where(rank)
    if thread is not None and thread.tid != rank.pid:
        inside = ", ".join(filter(None, (thread.call.name if thread.call is not None else "", thread.wchan)))
        text = f"its thread {thread.tid}: state {thread.state}, {inside}, has not run for {lasting(thread.asleep_s)}"
    return Evidence("proc", f"{rank.label} (pid {rank.pid}): {text}", rank.name, rank.pid)


def _task(rank: Rank) -> str:
    """ "7", or "7/task/9" for a thread of its own."""
    tid = rank.wait.tid
    return str(rank.pid) if tid in (None, rank.pid) else f"{rank.pid}/task/{tid}"


def _asleep_s(context: Context, rank: Rank) -> float:
    """For how long it has been asleep on storage: quiet, and in that wait at every look."""
    if rank.wait.asleep_s is not None:
        return min(rank.quiet_s(context.watched_t), rank.wait.asleep_s)
    since_t = rank.clock.state_since_t if rank.clock is not None else None
    quiet_s = rank.quiet_s(context.watched_t)
    return min(quiet_s, context.watched_t - since_t) if since_t is not None else quiet_s


def stale_lock(context: Context) -> Verdict | None:
    """Ranks poll a lock file that nobody holds, and nobody compiles: the lock of a build that was killed."""
    waiting = [v for v in context.ranks if v.wait.kind is WaitKind.STALE_LOCK and not v.active(context.t)]
    if not waiting or any(v.active(context.t) for v in context.ranks):
        return None
    rest = [
        v
        for v in context.ranks
        if v not in waiting and not v.waits_for_peer and v.wait.kind not in (WaitKind.FUTEX, WaitKind.IDLE)
    ]
    limits = context.limits(certain=not rest)
    if context.quiet_s < limits.suspect_s:
        return None
    first = waiting[0]
    file = first.wait.target or "a lock file"
    return Verdict(
        "stalled" if context.quiet_s >= limits.stalled_s else "suspect",
        f"{phrase(waiting, f'waits for {file}')}, which no live process holds: the lock of a build that was killed",
        phase=first.phase,
        since_t=context.activity_t,
        confidence=0.85 if first.wait.target else 0.7,
        rule="stale-lock",
        odd_ranks=ranks_of(context, waiting),
        evidence=(
            wait_fact(context, first),
            Evidence("compiler", "no compiler runs anywhere below the server"),
            log_fact(context),
        ),
        next=(
            NextStep(
                "Make sure that nothing builds, then remove it", f"rm {quoted(file)}" if first.wait.target else ""
            ),
            dump_step(first),
        ),
    )


def stalled(context: Context) -> Verdict | None:
    """No sign of activity for too long: suspect, then stalled; with the culprit where it can be told."""
    if context.quiet_s < silence_limits.SUSPECT_S:
        return None
    blame = find_blame(context)
    if blame is not None and any(v.active(context.t) for v in blame.culprits):
        blame = None  # the awaited rank works: slow, not hung
    certain = blame is not None and blame.sure >= CERTAIN
    limits = context.limits(certain=certain)
    blamed: Sequence[Rank] = blame.culprits if blame is not None else context.ranks
    if context.quiet_s < limits.suspect_s or any(v.wait.kind is WaitKind.STORAGE for v in blamed):
        return None  # storage has a clock of its own: a slow disk looks dead for long
    evidence = _evidence(context, blame)
    proven = context.quiet_s >= limits.stalled_s and not context.blind and len({e.signal for e in evidence}) >= 2
    return Verdict(
        "stalled" if proven else "suspect",
        _headline(context, blame),
        phase=_phase(context, blame),
        since_t=context.activity_t,
        confidence=_confidence(context, blame, proven),
        rule="peer-missing" if blame is not None else "quiet",
        odd_ranks=ranks_of(context, blame.culprits) if blame is not None else (),
        evidence=evidence,
        next=_steps(context, blame),
    )


def busy_for_nothing(context: Context, alone_s: float) -> Verdict:
    """CPU time alone has moved for very long: computing and spinning look alike from outside."""
    busy = [v for v in context.ranks if v.cpu_mark is not None and v.active(context.t)]
    first = (busy or list(context.ranks))[0]
    return Verdict(
        "suspect",
        f"{context.phase_words}: no activity but CPU time; "
        f"{names(busy) if busy else 'nobody'} {verb(busy, 'computes, or spins', 'compute, or spin')}",
        phase=context.phase,
        since_t=context.non_cpu_activity_t,
        confidence=0.4,
        rule="cpu-alone",
        evidence=(
            quiet_fact(context, first),
            Evidence("cpu", f"CPU time is the only activity for {since(context, context.t - alone_s)}"),
            log_fact(context),
        ),
        next=(STEP_STACKS, dump_step(first)),
    )


def _headline(context: Context, blame: Blame | None) -> str:
    if blame is not None:
        stage = context.during(blame.culprits[0].phase)
        who = plural(len(blame.waiters), "other rank")
        waits = f"{who} {verb(blame.waiters, 'waits', 'wait')} for {verb(blame.culprits, 'it', 'them')}"
        return f"{_absence(blame)} {stage}; {waits}"
    stage = context.in_phase
    if context.blind:
        return f"no counter of any rank can be read, and the log is silent {stage}"
    if all(v.waits_for_peer for v in context.ranks) and len(context.ranks) > 1:
        spin = "spin" if all(v.wait.kind is WaitKind.GPU_SPIN for v in context.ranks) else "wait"
        nodes = ", this node's at least," if context.args.nnodes > 1 else ""
        return f"all {len(context.ranks)} ranks{nodes} {spin} in a collective {stage}: no data moves"
    if len(context.ranks) == 1:
        only = context.ranks[0]
        works = only.stack is not None and only.stack.works
        what = (
            f", in {only.stack.frame}" if works and only.stack is not None else f": it {doing(only, context.t).words}"
        )
        return f"{only.label} makes no progress {context.during(only.phase)}{what}"
    return f"no activity {stage}, on any of {plural(len(context.ranks), 'rank')}"


def _phase(context: Context, blame: Blame | None) -> str:
    """Of who is to blame, or of the only rank; else the server's."""
    one = blame.culprits if blame is not None else context.ranks
    return one[0].phase if blame is not None or len(one) == 1 else context.phase


def _absence(blame: Blame) -> str:
    late = blame.culprits
    if all(v.importing for v in late):
        return f"{phrase(late, 'is')} stuck importing modules, and missing from the rendezvous"
    first = late[0]
    if first.wait.kind in _OWN_WAITS:
        return phrase(late, first.wait.text)
    at = f" (stuck in {first.stack.frame})" if len(late) == 1 and first.stack and first.stack.works else ""
    return f"{phrase(late, 'is')} missing from the collective{at}"


def _evidence(context: Context, blame: Blame | None) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    if blame is not None:
        first = blame.culprits[0]
        found += [quiet_fact(context, first), *_position(context, first)]
        stack = _stack_fact(first)
        found += [stack] if stack is not None else []
        found += [wait_fact(context, v) for v in blame.waiters[:1]]
        found.append(Evidence(blame.signal, f"{names(blame.culprits)}: {blame.why}"))
    else:
        found += [quiet_fact(context, v) for v in context.ranks[:2]]
        found += [fact for v in context.ranks[:1] for fact in _position(context, v)]
        found += [
            _stack_fact(v) or wait_fact(context, v) for v in context.ranks[:1] if v.wait.text or v.stack is not None
        ]
    found.append(log_fact(context))
    past = usual.words(context.snapshot)
    history = Evidence("history", past) if past else None
    extra = [e for e in (*map(clock_fact, kill_clocks(context)[:1]), history, *certain(context)) if e is not None]
    extra = [*files_facts(context)[:1], *extra[:1]]
    return (*found[: 5 - len(extra)], *extra)


def _stack_fact(rank: Rank) -> Evidence | None:
    if rank.stack is None:
        return None
    samples = len(rank.dumps)
    same = f", unchanged in {samples} samples" if samples > 1 and not rank.stack.moving else ""
    return Evidence("stack", f"{rank.label} is in {rank.stack.frame}{same}", rank.name, rank.pid)


def _confidence(context: Context, blame: Blame | None, proven: bool) -> float:
    sure = blame.sure if blame is not None else 0.7
    if context.blind:
        return 0.3
    return round(sure if proven else sure * 0.7, 2)


def _steps(context: Context, blame: Blame | None) -> tuple[NextStep, ...]:
    views: Sequence[Rank] = blame.culprits if blame is not None else context.ranks
    return (*(dump_step(v) for v in views[:1]), STEP_STACKS)
