"""The ranks of a snapshot: process, clock, GPU, log and stacks of each side by side.

The subjects are the workers and the importing children that will be workers; before there are any, whoever the start
waits for: importing processes, a controller, or the launcher.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sgmon.analyse.family import family_of
from sgmon.analyse.gpu.rank_mapping import gpu_of
from sgmon.analyse.memo import Memo
from sgmon.analyse.phase import phase_of_snapshot, phases_of_stacks, version_of
from sgmon.analyse.ranks.log_progress import Progress, progress_of
from sgmon.analyse.ranks.waits import wait_of
from sgmon.analyse.stacks.rules import rules_of
from sgmon.analyse.stacks.waits import read_stacks
from sgmon.model import (
    ActivityClock,
    Gpu,
    Process,
    Rank,
    RankMilestone,
    RankProgress,
    RankState,
    Snapshot,
    StackDump,
    WaitKind,
)
from sgmon.model.rank import cpu_counts
from sgmon.model.roles import Role
from sgmon.servers.phases import PhaseTable
from sgmon.servers.registry import role_label

#: dumps older than the newest sign of activity say nothing about now; of a rank that has used CPU since, those older
#: than this neither
STACK_FRESH_S = 300.0
KEPT_DUMPS = 3
_HALTED = {"stopped": RankState.PAUSED, "frozen": RankState.FROZEN, "traced": RankState.TRACED}


class Kept:
    """What is made of the milestones of one log, kept for the next snapshot. Each node has its own: one for all would
    lose it with every other node's reading."""

    def __init__(self) -> None:
        self.milestones: Memo[dict[str, tuple[RankMilestone, ...]]] = Memo(2)
        self.progress: Memo[dict[str, Progress]] = Memo(2)


class _Inputs(Struct, frozen=True):
    """What all ranks of one snapshot share, by pid or by rank."""

    snapshot: Snapshot
    phase: str
    clocks: Mapping[int, ActivityClock]
    lines: Mapping[str, RankProgress]
    passed: Mapping[str, tuple[RankMilestone, ...]]
    stacked: Mapping[int, str]
    lost: bool  # the log says nothing of phases
    before: Mapping[tuple[int, int], Rank]  # the ranks as they were
    progress: Mapping[str, Progress]
    table: PhaseTable
    dumps: Mapping[int, Sequence[StackDump]]


def with_ranks(snapshot: Snapshot, kept: Kept | None = None) -> Snapshot:
    """The snapshot with its phase and its ranks; those that have ended since keep their last facts, at the end.
    kept: of the snapshots before, changed by this one."""
    kept = kept if kept is not None else Kept()
    phase, source = phase_of_snapshot(snapshot)
    table = family_of(snapshot).phases
    chosen = subjects(snapshot.procs.processes)
    version = version_of(snapshot)
    names = tuple(process.rank for process in chosen if process.role is Role.WORKER)
    inputs = _Inputs(
        snapshot,
        snapshot.log.reached if source == "log" and snapshot.log.behind else phase,
        clocks={c.pid: c for c in snapshot.clocks if c.gone_t is None},
        lines={p.rank: p for p in snapshot.log.ranks},
        passed=kept.milestones.get(
            (snapshot.log.milestones, snapshot.server),
            (snapshot.epoch, snapshot.log_zone_s),
            lambda: _passed(snapshot),
        ),
        stacked=phases_of_stacks(snapshot, phase),
        lost=source != "log",
        before={rank.process.key: rank for rank in snapshot.ranks},
        progress=kept.progress.get(
            (snapshot.log.milestones, table),
            (names, version, snapshot.log.family),
            lambda: progress_of(snapshot.log, names, version, table),
        ),
        table=table,
        dumps=_by_pid(snapshot.stacks),
    )
    phases = [_phase(process, inputs) for process in chosen]
    over = table.order("scheduler_ready")
    behind = any(table.order(own) < over for own in phases)
    ranks = tuple(
        _rank(process, inputs, own, done=behind and table.order(own) >= over)
        for process, own in zip(chosen, phases, strict=True)
    )
    return replace(snapshot, phase=phase, phase_source=source, ranks=(*ranks, *_ended(snapshot, ranks)))


def subjects(processes: Iterable[Process]) -> list[Process]:
    """Workers and children that will be workers; before there are any, whoever is starting."""
    alive = [process for process in processes if process.alive]
    roles = {process.role for process in alive}
    chosen = [p for p in alive if p.role is Role.WORKER or _will_be_worker(p)]
    if not chosen:
        led = any(Role.ENGINE in (p.role, p.becomes) for p in alive)  # engines spawn the workers, no controller
        starting = {Role.IMPORTING, Role.ENGINE} if led else {Role.IMPORTING, Role.CONTROLLER}
        chosen = [p for p in alive if p.role in starting]
    if not chosen and Role.RESOURCE_TRACKER not in roles:
        chosen = [p for p in alive if p.role is Role.LAUNCHER]  # once it has children it only waits for them
    return chosen


def _will_be_worker(process: Process) -> bool:
    if process.role is not Role.IMPORTING:
        return False
    return bool(process.rank or process.rank_inferred or process.becomes is Role.WORKER)


def _rank(process: Process, inputs: _Inputs, phase: str, done: bool) -> Rank:
    """done: its own start is over while other ranks are behind. CPU time of its idle loop is no activity then."""
    snapshot, role = inputs.snapshot, process.role
    clock = inputs.clocks.get(process.pid)
    progress = inputs.progress.get(process.rank)
    dumps = _dumps(inputs.dumps.get(process.pid, ()), snapshot.t, clock)
    stack = read_stacks(dumps, rules_of(snapshot.server))
    wait = wait_of(process, clock, stack)
    first = clock.first_t if clock is not None and clock.first_t is not None else 0.0
    other = next((m.t for m in clock.marks if m.signal != "cpu"), 0.0) if clock is not None else 0.0
    cpu = clock.mark("cpu") if clock is not None else None
    cpu_t = cpu.t if cpu is not None and cpu_counts(wait.kind, done) else 0.0
    return Rank(
        name=process.rank,
        label=_label(snapshot.family, process),
        role=role,
        process=process,
        clock=clock,
        phase=phase,
        passed=inputs.passed.get(process.rank, ()) if role is Role.WORKER else (),
        progress=progress,
        wait=wait,
        stack=stack,
        state=_state(process, role, wait.kind),
        activity_t=max(first, other, cpu_t),
        non_cpu_t=max(first, other),
        gpu=_gpu(process, inputs),
        dumps=dumps,
        done=done,
    )


def _gpu(process: Process, inputs: _Inputs) -> Gpu | None:
    """Its GPU; as it was, where the driver does not list the process any more (it is about to end)."""
    gpus = inputs.snapshot.gpu.gpus
    found, before = gpu_of(process, gpus), inputs.before.get(process.key)
    if found is not None or before is None or before.gpu is None:
        return found
    return next((gpu for gpu in gpus if gpu.index == before.gpu.index), None)


def _label(family: str, process: Process) -> str:
    """Of an importing child, what it becomes: "the engine core"; "the worker process" when that is not known."""
    role = process.becomes if process.becomes in (Role.ENGINE, Role.CONTROLLER) else process.role
    if role is Role.LAUNCHER:
        return "the launcher"
    known = role in (Role.WORKER, Role.ENGINE, Role.CONTROLLER)
    return process.rank or (f"the {role_label(family, role)}" if known else "the worker process")


def _state(process: Process, role: Role, wait: WaitKind) -> RankState:
    """One decision, the surest first."""
    if process.halted:
        return _HALTED[process.halted]
    if process.cpu_s is None:
        return RankState.UNKNOWN
    if role is Role.IMPORTING:
        return RankState.STARTING
    return RankState.WAITING if wait is not WaitKind.NONE else RankState.RUNNING


def _phase(process: Process, inputs: _Inputs) -> str:
    """Its own phase: of its last line where it is behind the furthest rank, else of its stack, else the server's.

    A process that cannot run stays where it was, whatever the others do.
    """
    before = inputs.before.get(process.key)
    if process.halted and before is not None and not (before.phase == "spawn" and process.role is Role.WORKER):
        return before.phase  # with a title it has left its imports, if it is halted or not
    if process.role is Role.IMPORTING:
        return "spawn"
    place = inputs.progress.get(process.rank)
    line = inputs.lines.get(process.rank)
    if place is not None and line is not None and place != max(inputs.progress.values()):
        return inputs.table.after(line.phase) if line.event == "end" else line.phase
    order = inputs.table.order
    own, begun = inputs.stacked.get(process.pid, inputs.phase), order("scheduler_ready")
    if not inputs.lost:
        if order(own) >= begun:
            return inputs.phase  # its stack is where it idles, too
        said = "" if line is None else inputs.table.after(line.phase) if line.event == "end" else line.phase
        return min(max(own, said, key=order), inputs.phase, key=order)
    own = inputs.phase if order(inputs.phase) > begun else own  # the port knows more than any stack
    return before.phase if before is not None and order(before.phase) > order(own) else own


def _by_pid(dumps: Iterable[StackDump]) -> dict[int, list[StackDump]]:
    """pid -> its dumps, in their order."""
    found: dict[int, list[StackDump]] = {}
    for dump in dumps:
        found.setdefault(dump.pid, []).append(dump)
    return found


def _dumps(own: Sequence[StackDump], t: float, clock: ActivityClock | None) -> tuple[StackDump, ...]:
    """The newest of a rank's own dumps that still speak of ``t``."""
    if not own:
        return ()
    marks = clock.marks if clock is not None else ()
    other_t = max((m.t for m in marks if m.signal != "cpu"), default=0.0)
    any_t = max((m.t for m in marks), default=0.0)
    fresh = (d for d in own if d.t >= other_t and (d.t >= any_t or t - d.t <= STACK_FRESH_S))
    return tuple(fresh)[-KEPT_DUMPS:]


def _passed(snapshot: Snapshot) -> dict[str, tuple[RankMilestone, ...]]:
    """rank -> its milestones, oldest first."""
    found: dict[str, list[RankMilestone]] = {}
    for m in snapshot.log.milestones:
        made = RankMilestone(m.name, m.phase, m.line, m.event, snapshot.passed_t(m))
        found.setdefault(m.rank, []).append(made)
    return {rank: tuple(milestones) for rank, milestones in found.items()}


def _ended(snapshot: Snapshot, ranks: tuple[Rank, ...]) -> list[Rank]:
    """Ranks of before whose process has ended."""
    gone = {clock.pid: clock for clock in snapshot.clocks if clock.gone_t is not None}
    alive = {rank.pid for rank in ranks}
    return [
        replace(rank, state=RankState.GONE, clock=gone[rank.pid], phase=_last_phase(rank, snapshot))
        for rank in snapshot.ranks
        if rank.pid in gone and rank.pid not in alive
    ]


def _last_phase(rank: Rank, snapshot: Snapshot) -> str:
    """Where it was seen last; one that was importing then and ended before the next look is where its lines say."""
    line = next((one for one in snapshot.log.ranks if rank.name and one.rank == rank.name), None)
    if rank.role is not Role.IMPORTING or line is None:
        return rank.phase
    table = family_of(snapshot).phases
    return max(rank.phase, table.after(line.phase) if line.event == "end" else line.phase, key=table.order)
