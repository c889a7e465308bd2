"""Stopped: a worker in state T or t, or frozen. Certain the moment it is seen."""

from __future__ import annotations

from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.facts import doing_fact
from sgmon.model import ESSENTIAL_ROLES, Evidence, NextStep, Process, Role, Verdict
from sgmon.units import plural, rank_list

#: a tracer that stays: a dump takes 0.2 s, native 3 s
TRACED_S = 5.0
_ROLES = ESSENTIAL_ROLES - {Role.WEIGHT_CACHE}


def stopped(context: Context) -> Verdict | None:
    """The stopped processes, what stopped them, and who waits for them."""
    alive = [p for p in context.snapshot.procs.processes if p.role in _ROLES and p.alive]
    halted = [p for p in alive if p.halted in ("stopped", "frozen") or _traced(context, p)]
    if not halted:
        return None
    everyone = len(halted) == len(alive) and len(alive) > 1
    names = _names(context, halted)
    frozen = context.snapshot.procs.cgroup_frozen or any(p.halted == "frozen" for p in halted)
    traced = [p for p in halted if p.halted == "traced"]
    others = [v for v in context.ranks if v.pid not in {p.pid for p in halted}]
    waiting = [v for v in others if not v.active(context.t)]
    own = next((v.phase for v in context.ranks if v.pid == halted[0].pid), context.phase)
    stage = context.during(own)
    be, group = ("is", "its") if everyone or len(halted) == 1 else ("are", "their")
    if frozen:
        headline = (
            f"{'the whole server' if everyone else names} {be} frozen by {group} cgroup {stage} (docker pause?)"
        )
    elif traced:
        tracer = traced[0].tracer_pid
        who = f"(pid {tracer})" if tracer else "(its pid is not known)"
        headline = f"{names} {be} held by a debugger {who} {stage}"
    elif everyone:
        headline = f"the whole server is paused {stage} (Ctrl-Z or SIGSTOP)"
    else:
        headline = f"{names} {be} paused (SIGSTOP) {stage}"
    if waiting and not everyone:
        verb = "waits" if len(waiting) == 1 else "wait"
        headline += f"; {plural(len(waiting), 'other rank')} {verb} for it"
    evidence = [_fact(context, p) for p in halted[:3]]
    evidence += [doing_fact(context, v) for v in others[:2]]
    return Verdict(
        "stopped",
        headline,
        phase=own,
        since_t=min(_since(context, p) for p in halted),
        confidence=1.0 if not traced else 0.9,
        rule="frozen" if frozen else "traced" if traced else "stopped",
        odd_ranks=() if everyone else tuple(p.rank or context.label(p.role) for p in halted),
        evidence=tuple(evidence),
        next=_steps(halted, frozen, traced),
    )


def _traced(context: Context, process: Process) -> bool:
    """In state t for long, and not by our own dump."""
    if process.halted != "traced":
        return False
    request = context.snapshot.stacks_request
    ours = request is not None and not request.done
    ours = ours or any(p.name == "stacks" and p.in_flight_since_t is not None for p in context.snapshot.probes)
    return not ours and context.t - _since(context, process) >= TRACED_S


def _since(context: Context, process: Process) -> float:
    for clock in context.snapshot.clocks:
        if clock.pid == process.pid and clock.state_since_t is not None:
            return clock.state_since_t
    return context.t


def _names(context: Context, halted: list[Process]) -> str:
    ranks = tuple(p.rank for p in halted if p.rank)
    if ranks:
        return rank_list(ranks)
    return f"the {context.label(halted[0].role)}" if halted[0].role != Role.IMPORTING else "an importing worker"


def _fact(context: Context, process: Process) -> Evidence:
    who = process.rank or context.label(process.role)
    wchan = f", {process.wchan}" if process.wchan and process.wchan != "0" else ""
    tracer = f", traced by pid {process.tracer_pid}" if process.tracer_pid else ""
    return Evidence(
        "proc", f"{who} (pid {process.pid}): state {process.state}{wchan}{tracer}", process.rank, process.pid
    )


def _steps(halted: list[Process], frozen: bool, traced: list[Process]) -> tuple[NextStep, ...]:
    if frozen:
        return (NextStep("Thaw its container", "docker unpause CONTAINER"),)
    if traced:
        tracer = traced[0].tracer_pid
        look = f"ps -o pid,user,args -p {tracer}" if tracer else f"grep TracerPid /proc/{traced[0].pid}/status"
        return (NextStep("See who traces it", look),)
    pids = " ".join(str(p.pid) for p in halted)
    return (
        NextStep("Resume it", f"kill -CONT {pids}"),
        NextStep(
            "See where it is (works on a paused process)",
            f"py-spy dump --nonblocking --pid {halted[0].pid}",
            key="d",
        ),
    )
