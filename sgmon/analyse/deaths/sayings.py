"""What the log says about ends: who complains of a lost peer, whom the launcher names, who failed by itself."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from sgmon.analyse.deaths.death import Death
from sgmon.model import Complaint, LogError, Role, Snapshot

#: a line is read this much after it was written, also on a busy machine
LOG_LATE_S = 1.0
#: an error line that is older than the first end by more than this was survived
RECENT_S = 60.0
#: grades of lines that are a process's own failure
_OWN = frozenset({"root", "exception"})
#: a traceback whose end has not come by then is cut for good; before, its exception may be a lost peer
CUT_S = 2.0
#: grades of lines by which the launcher tells of an end, or begins its own
_LAUNCHERS = frozenset({"killed", "consequence", "cleanup"})


class Sayings(Struct, frozen=True):
    """victims: pids of ranks whose first complaint is a lost peer. own: pid -> the line of its own failure. named:
    pids that the launcher says have died of a signal. reacted: the launcher's first line about an end of others.
    cause: the failure that the log names as the first, where it is no loss of a peer and no end of a process.
    lost: the first complaint of a lost peer. readable: the log is read, and is this server's.
    """

    victims: frozenset[int]
    own: dict[int, Complaint]
    named: frozenset[int]
    reacted: Complaint | None
    cause: LogError | None
    lost: Complaint | None
    readable: bool


def sayings(snapshot: Snapshot, dead: tuple[Death, ...]) -> Sayings:
    """The log's part, by process."""
    since_t = min(death.earliest for death in dead) - RECENT_S
    complaints = tuple(c for c in snapshot.log.complaints if c.seen_t is None or c.seen_t >= since_t)
    first = {rank: next(c for c in complaints if c.rank == rank) for rank in {c.rank for c in complaints if c.rank}}
    by_rank = {death.rank: death.pid for death in dead if death.rank}
    return Sayings(
        victims=frozenset(pid for rank, pid in by_rank.items() if rank in first and first[rank].grade == "victim"),
        own={pid: first[rank] for rank, pid in by_rank.items() if rank in first and _is_own(snapshot, first[rank])},
        named=frozenset(filter(None, (named_pid(snapshot, c) for c in complaints if c.signalled))),
        reacted=next((c for c in complaints if c.grade in _LAUNCHERS or names_a_process(c)), None),
        cause=_cause(snapshot),
        lost=next((c for c in complaints if c.grade == "victim"), None),
        readable=_readable(snapshot),
    )


def with_told_signals(snapshot: Snapshot, dead: tuple[Death, ...]) -> tuple[Death, ...]:
    """The same ends, with the signal that a line names ("Rank 0 scheduler died ... (exit code: -9)")."""
    told = {named_pid(snapshot, c): c.signal for c in snapshot.log.complaints if c.signal is not None}
    return tuple(replace(death, told_signal=told[death.pid]) if death.pid in told else death for death in dead)


def names_a_process(complaint: Complaint) -> bool:
    """It says of a process that it has died."""
    return complaint.pid is not None or complaint.index is not None


def _cause(snapshot: Snapshot) -> LogError | None:
    error, ready_line = snapshot.log.error, snapshot.log.ready_line
    if error is None or (ready_line is not None and error.line < ready_line):
        return None
    line = next((c for c in snapshot.log.complaints if c.line == error.line and c.kind == error.kind), None)
    if line is None:
        return error
    return error if _is_own(snapshot, line) and not names_a_process(line) else None


def _is_own(snapshot: Snapshot, line: Complaint) -> bool:
    cut = line.grade == "cut" and (line.seen_t is None or snapshot.t - line.seen_t >= CUT_S)
    return cut or line.grade in _OWN


def named_pid(snapshot: Snapshot, complaint: Complaint) -> int | None:
    """The pid that it names, or the pid of the worker at that place among the launcher's. Who writes the line is none
    of those that it names: an engine whose worker is gone looks like one that works itself."""
    if complaint.pid is not None:
        return complaint.pid if any(clock.pid == complaint.pid for clock in snapshot.clocks) else None
    spoke, seen = {one.rank for one in snapshot.log.ranks if one.rank}, {clock.rank for clock in snapshot.clocks}
    if complaint.index is None or not spoke <= seen:  # one that spoke was gone before sgmon looked: no place is sure
        return None
    workers = sorted(
        (c.born, c.pid)
        for c in snapshot.clocks
        if (c.role is Role.WORKER or c.becomes is Role.WORKER or c.rank) and c.pid != complaint.by
    )
    return workers[complaint.index][1] if complaint.index < len(workers) else None


def _readable(snapshot: Snapshot) -> bool:
    log = snapshot.log
    stuck = any(p.name == "log" and (p.error or p.in_flight_since_t is not None) for p in snapshot.probes)
    return bool(log.milestones) and log.change not in ("missing", "unreadable", "deleted") and not stuck
