"""Ranks that have no process at all: they died, and were reaped, before anybody looked. Some parents never notice."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.analyse.diagnosis.context import Context
from sgmon.model import Evidence, NextStep, Process, Rank, Role, Verdict
from sgmon.servers.family import Discovery
from sgmon.text import quoted
from sgmon.units import duration, plural, rank_list

#: how old the other ranks must be: ranks are born within a second of each other
SEEN_S = 20.0
#: the kernel's clock ticks in /proc/PID/stat (USER_HZ), the same on every architecture that is supported
_TICKS = 100.0
#: roles without a rank: their name is "", as that of the only rank
_OTHERS = frozenset({Role.LAUNCHER, Role.DETOKENIZER, Role.TOKENIZER, Role.API_SERVER, Role.CONTROLLER})
_SPAWNERS = frozenset({Role.LAUNCHER, Role.CONTROLLER, Role.ENGINE, Role.API_SERVER})


def absent(context: Context) -> Verdict | None:
    """The ranks of this node that the arguments ask for, without those that live: one look is enough.

    Nothing is missing while a child is nameless, while a parent cannot go on spawning, or where a rank has a name
    that was not expected. Of a rank that was seen its end is seen, too.
    """
    expected, alive = expected_ranks(context), [rank for rank in context.ranks if rank.role is Role.WORKER]
    here = {rank.name for rank in alive}
    lost = tuple(rank for rank in expected if rank not in here)
    seen = [rank.process for rank in alive] or _later_born(context)
    if not (seen and lost) or context.launcher is None or not here <= set(expected) or _may_come(context, alive):
        return None
    if any(clock.rank in lost and clock.role not in _OTHERS for clock in context.snapshot.clocks):
        return None
    spoke = {rank.rank: rank.line for rank in context.snapshot.log.ranks if rank.rank in lost}
    age_s = min(_age_s(context, process) for process in seen)
    if age_s < SEEN_S and not spoke:
        return None
    return _verdict(context, expected, seen, lost, spoke, age_s)


def _later_born(context: Context) -> list[Process]:
    """Where no rank lives at all: the processes that the launcher starts after its ranks."""
    return [p for p in context.snapshot.procs.processes if p.alive and p.role is Role.DETOKENIZER]


def expected_ranks(context: Context) -> tuple[str, ...]:
    """The ranks that the arguments give this node, as far as the family says who spawns what."""
    if not context.args.known:
        return ()
    return tuple(_below(context, context.family.discovery, Role.LAUNCHER, ""))


def _below(context: Context, discovery: Discovery, parent: Role, rank: str) -> Iterator[str]:
    for slot in discovery.expected_children(parent, context.args, context.version):
        own = discovery.rank_below(rank, slot.rank)
        if slot.role is Role.WORKER:
            yield own
        elif slot.role in _SPAWNERS:
            yield from _below(context, discovery, slot.role, own)


def _may_come(context: Context, alive: list[Rank]) -> bool:
    """Whether a rank may still be born, or live under another name."""
    processes = [p for p in context.snapshot.procs.processes if p.alive]
    others = any(rank.role not in (Role.WORKER, Role.LAUNCHER) for rank in context.ranks)
    nameless = others or any(rank.process.rank_inferred for rank in alive)
    held = any(p.halted for p in processes if p.role in _SPAWNERS)
    return nameless or held or any(p.role is Role.IMPORTING for p in processes)


def _age_s(context: Context, process: Process) -> float:
    """Seconds since a process was started; where that is not known, since it was first seen."""
    server = context.snapshot.server
    if server is not None and server.started_epoch is not None:
        began = server.started_epoch + (process.start_ticks - server.start_ticks) / _TICKS
        return context.snapshot.epoch + context.t - began
    clock = next((one for one in context.snapshot.clocks if one.pid == process.pid), None)
    return context.t - (clock.first_t or context.t) if clock is not None else 0.0


def _verdict(
    context: Context,
    expected: tuple[str, ...],
    seen: list[Process],
    lost: tuple[str, ...],
    spoke: dict[str, int],
    age_s: float,
) -> Verdict:
    assert context.launcher is not None
    kind = context.label(seen[0].role)
    has = "has" if len(lost) == 1 else "have"
    named = rank_list(lost) if all(lost) else f"the {context.label(Role.WORKER)}"
    path = context.snapshot.log.path
    search = f"grep -n -i -E 'died|killed|exception' {quoted(path)}" if path else ""
    evidence = [
        Evidence("args", f"the arguments ask for {plural(len(expected), 'rank')} here: {rank_list(expected)}"),
        Evidence(
            "proc",
            f"below the launcher (pid {context.launcher.pid}) {plural(len(seen), kind)} "
            f"{'lives' if len(seen) == 1 else 'live'}, the youngest for {duration(age_s)}",
        ),
    ]
    evidence += [
        Evidence("log", f"{rank} spoke, last in line {line}", rank) for rank, line in list(spoke.items())[:1]
    ]
    return Verdict(
        "crashed",
        f"{named} {has} no process {context.in_phase}: gone before sgmon looked",
        phase=context.phase,
        confidence=0.9 if spoke else 0.75,
        rule="rank-absent",
        odd_ranks=tuple(rank for rank in lost if rank),
        evidence=tuple(evidence),
        next=(NextStep("Look for its end in the log", search),) if search else (),
    )
