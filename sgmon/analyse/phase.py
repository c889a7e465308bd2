"""The phase of the start: from the log, else from stacks, titles, mapped shards, compilers and the port."""

from __future__ import annotations

from typing import NamedTuple

from sgmon.analyse.family import family_of
from sgmon.analyse.stacks.phase import phase_of, phase_of_all
from sgmon.analyse.stacks.rules import rules_of
from sgmon.model import Role, Snapshot, StackDump

#: a stack this young tells the phase of now; an older one tells that the start has come this far
STACK_FRESH_S = 30.0
#: dumps of one request lie this close together
_TOGETHER_S = 10.0


#: ranks that have their titles, and of which nothing else is seen, begin with it; after so long they may be anywhere
GUESS_S = 20.0
#: what is seen by the first look at the processes may be of any age
_FIRST_LOOK_S = 2.0
#: roles of processes that the launcher starts after its own imports
_LATER = frozenset({Role.WORKER, Role.ENGINE, Role.CONTROLLER, Role.IMPORTING})


class Shown(NamedTuple):
    """The phase, and what tells it. source: log | stack | proc."""

    name: str
    source: str


def phase_of_snapshot(snapshot: Snapshot) -> Shown:
    """The log's phase; what stacks and processes show when the log says nothing or is behind them. What they show is
    never less than before: within a start a phase does not go back."""
    order = family_of(snapshot).phases.order
    found = _shown(snapshot)
    told = found.source == "log" and not bars_alone(snapshot)
    in_program = snapshot.server is not None and snapshot.server.in_program  # no line says that its engine is ready
    if told and not in_program:
        return found
    if any(one.state == "ready" and one.t >= (snapshot.server_seen_t or 0.0) for one in snapshot.verdicts):
        return Shown("serving", found.source)
    if told:
        return found
    before = Shown(snapshot.phase, snapshot.phase_source)
    if found.source == "stack" and order(before.name) < order("scheduler_ready"):
        return found  # the stack of one more rank may show that it is behind
    return before if before.source and order(before.name) > order(found.name) else found


def _shown(snapshot: Snapshot) -> Shown:
    order = family_of(snapshot).phases.order
    shown = _from_processes(snapshot)
    logged = snapshot.log.phase
    known = None
    if not log_is_lost(snapshot):
        behind = logged in ("launch", "spawn") and order(shown) > order(logged)
        known = Shown(shown, "proc") if behind else Shown(logged, "log")
        if not bars_alone(snapshot):
            return known
    dumps = _dumps(snapshot)
    stacked = phase_of_all(dumps, version_of(snapshot), rules_of(snapshot.server))
    if known is not None:
        further = max((Shown(shown, "proc"), Shown(stacked, "stack")), key=lambda one: order(one.name))
        return further if order(further.name) > order(known.name) else known
    if not stacked or order(shown) >= order("warmup"):  # the port knows more than any stack
        return Shown(shown, "proc")
    fresh = snapshot.t - max(dump.t for dump in dumps) <= STACK_FRESH_S
    return Shown(stacked, "stack") if fresh or order(stacked) >= order(shown) else Shown(shown, "proc")


def log_is_lost(snapshot: Snapshot) -> bool:
    """No log can be read, it is empty, or its beginning with all milestones is gone."""
    return not snapshot.log.phase


def bars_alone(snapshot: Snapshot) -> bool:
    """The log has no record of the server, and what it tells of the start are bars: the log level is "error", as that
    of an engine in a program is by default. A bar tells how far the start has come at least."""
    milestones, rules = snapshot.log.milestones, family_of(snapshot).log
    if not milestones or rules is None:
        return False
    bars = {name for _, name in rules.bars} | {"weights_100"}
    return all(milestone.name in bars for milestone in milestones)


def phases_of_stacks(snapshot: Snapshot, phase: str) -> dict[int, str]:
    """pid -> the phase that its fresh stack proves, for where the log is lost, or speaks of the launcher alone (in
    ``phase``): ranks print nothing of their own then."""
    if not log_is_lost(snapshot) and not family_of(snapshot).phases.of(phase).launcher:
        return {}
    version, rules = version_of(snapshot), rules_of(snapshot.server)
    found = {dump.pid: phase_of(dump, version, rules) for dump in _dumps(snapshot)}
    return {pid: phase for pid, phase in found.items() if phase}


def version_of(snapshot: Snapshot) -> str:
    server = snapshot.server
    return snapshot.log.version or (server.version if server is not None else "")


def _dumps(snapshot: Snapshot) -> list[StackDump]:
    """The newest usable dump of each process that lives, of the last request alone."""
    alive = {p.pid for p in snapshot.procs.processes if p.alive}
    newest = {d.pid: d for d in snapshot.stacks if d.threads and not d.error and d.pid in alive}
    last_t = max((d.t for d in newest.values()), default=0.0)
    return [d for d in newest.values() if last_t - d.t <= _TOGETHER_S]


def is_guess(snapshot: Snapshot) -> bool:
    """Whether nothing proves the phase: no log and no stack tells it, and what the processes show would be the same
    later, since sgmon came when they had their titles or had ended."""
    if snapshot.phase_source != "proc" or not log_is_lost(snapshot) or snapshot.has_been_ready:
        return False
    order, phase = family_of(snapshot).phases.order, snapshot.phase
    processes = snapshot.procs.processes
    if phase in ("ready", "serving") or order(phase) >= order("warmup") >= 0:
        return False
    if phase == "weights" and any(p.shards is not None and p.shards.names for p in processes):
        return False
    if any(c.load_bytes for c in snapshot.clocks):
        return False  # it was seen to load
    came_t = snapshot.server_seen_t or 0.0
    born_later = any((c.first_t or 0.0) > came_t + _FIRST_LOOK_S for c in snapshot.clocks if c.role in _LATER)
    if phase in ("launch", "spawn"):
        dead_before = any(c.gone_t is not None and c.alive_t is None for c in snapshot.clocks)
        return dead_before and not born_later
    return not born_later or (phase == "dist_init" and snapshot.t - came_t >= GUESS_S)


def _from_processes(snapshot: Snapshot) -> str:
    alive = [p for p in snapshot.procs.processes if p.alive]
    schedulers = [p for p in alive if p.role == Role.WORKER]
    port = snapshot.port
    answers = port is not None and port.answer == "http" and not all(x.ours is False for x in port.listeners)
    if port is not None and answers and (schedulers or any(x.ours for x in port.listeners)):
        starting = next((p for p in ("warmup", "http") if family_of(snapshot).phases.order(p) >= 0), "warmup")
        return "ready" if port.status == 200 else starting
    late = any(p.role == Role.IMPORTING and p.becomes is Role.WORKER for p in alive)
    if not schedulers or (late and not snapshot.log.lines):
        return "spawn" if any(p.role in (Role.IMPORTING, Role.ENGINE) for p in alive) else "launch"
    if snapshot.log.lines:
        return "spawn"  # there is a log and it has not come to "init begin" yet: trust its order
    if any(p.shards is not None and p.shards.names for p in schedulers):
        return "weights"
    if not any(c.load_bytes for c in snapshot.clocks):
        return "dist_init"
    graphs = snapshot.server is None or not snapshot.server.args.disable_cuda_graph
    return "graphs" if graphs and any(p.compilers for p in schedulers) else "kv_cache"
