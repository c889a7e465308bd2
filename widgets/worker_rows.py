"""Rows of the workers panel from a snapshot: pure, and what folds with what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sgmon.model import ActivityClock, Process, Rank, Role, Snapshot, WaitKind
from sgmon.servers.registry import role_label
from sgmon.text import clean
from sgmon.units import plural, rank_list, rough
from widgets.phases import natural_key
from widgets.states import process_word, signal_label

_RANK_ROLES = (Role.WORKER, Role.IMPORTING)
_HELPER_ROLES = (Role.RESOURCE_TRACKER, Role.COMPILER, Role.OTHER)
_ROLE_ORDER = {
    Role.LAUNCHER: 0,
    Role.CONTROLLER: 1,
    Role.WORKER: 2,
    Role.IMPORTING: 2,
    Role.TOKENIZER: 3,
    Role.DETOKENIZER: 4,
}
_FRESH_S = 10
#: a wait that is known this well says more than the system call
_TELLING = 0.8
_LOCKS = (WaitKind.LOCK, WaitKind.STALE_LOCK)
#: places that last a moment only, while a process uses less than a tenth of a core
_ON_CPU, _NOT_PERMITTED = "on a CPU", "not permitted: ↵"
_LIVELY = ("run", "sleep", "disk", "importing")


RowKey = tuple[str, int]


class WorkerRow(NamedTuple):
    """One process, or several that look the same."""

    pids: tuple[int, ...]
    label: str
    ranks: tuple[str, ...]
    role: Role
    state: str
    state_style: str
    cpu: float | None
    rss: int | None
    read: float | None
    activity: str
    activity_s: int | None
    activity_style: str
    shards: int | None
    compilers: int
    blocked: str
    blocked_style: str
    odd: bool
    same_log: bool | None
    node: str = ""  # "" on a single machine, "3 nodes" of a folded row

    @property
    def key(self) -> RowKey:
        """Tells the row from all others: pids are of one machine."""
        return self.node, self.pids[0]

    @property
    def is_rank(self) -> bool:
        return self.role == Role.WORKER or (self.role == Role.IMPORTING and bool(self.ranks))

    @property
    def is_awake_for_a_moment(self) -> bool:
        """It was met on a CPU, or on its way there, though it sleeps nearly all the time."""
        return self.cpu is not None and self.cpu < 10 and self.blocked in (_ON_CPU, _NOT_PERMITTED)

    @property
    def is_helper(self) -> bool:
        return self.role in _HELPER_ROLES

    @property
    def fold_key(self) -> tuple[object, ...]:
        """Rows with the same key may be shown as one. The state of the moment is no difference while a rank works."""
        kind = "rank" if self.is_rank else self.label
        moment = ("works",) if self.activity_style == "ok" and self.state in _LIVELY else (self.state, self.blocked)
        return (kind, self.role, moment, self.odd, self.same_log, bool(self.compilers), bool(self.activity))


def worker_rows(snapshot: Snapshot) -> list[WorkerRow]:
    """One row per process: launcher, ranks in their order, the rest; of all nodes."""
    verdict, heard = snapshot.verdict, {view.name for view in snapshot.nodes if view.heard}
    rows: list[tuple[tuple[object, ...], WorkerRow]] = []
    for name, part in snapshot.parts:
        odd = set(verdict.odd_ranks) if not verdict.nodes or name in verdict.nodes else set()
        for process, row in _rows_of(part, snapshot.t, odd):
            if snapshot.nodes:
                row = row._replace(node=clean(name, 24)) if name in heard else _unheard(row, clean(name, 24))
            order = (_ROLE_ORDER.get(process.role, 9), natural_key(process.rank or "~"), name, process.pid)
            rows.append((order, row))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _rows_of(snapshot: Snapshot, t: float, odd: set[str]) -> Iterator[tuple[Process, WorkerRow]]:
    """The rows of one machine."""
    clocks = {clock.pid: clock for clock in snapshot.clocks}
    ranks = {rank.pid: rank for rank in snapshot.ranks}
    for p in snapshot.procs.processes:
        role = role_label(snapshot.family, p.role)
        yield p, _row(p, role, clocks.get(p.pid), ranks.get(p.pid), t, p.rank in odd)


def _unheard(row: WorkerRow, node: str) -> WorkerRow:
    """Of a node that is silent: what it was, and that nothing is known now."""
    words = "not known: no word from its node"
    return row._replace(
        node=node,
        state="unknown",
        state_style="dim",
        cpu=None,
        read=None,
        activity_style="dim",
        blocked=words,
        blocked_style="dim",
        compilers=0,
        odd=False,
    )


def _row(
    process: Process, role: str, clock: ActivityClock | None, rank: Rank | None, t: float, odd: bool
) -> WorkerRow:
    state, state_style = process_word(process)
    blocked, blocked_style = blocked_in(process, rank)
    activity, activity_s = last_activity(clock, rank, t)
    label = process.rank or role
    if process.rank and process.rank_inferred:
        label += "~"
    if process.role == Role.IMPORTING:
        state = "importing" if state in ("run", "sleep", "disk") else state
    rss_parts = (process.rss_anon_bytes, process.rss_file_bytes, process.rss_shmem_bytes)
    known = [part for part in rss_parts if part is not None]
    moves = not process.gone and not process.halted
    fresh = moves and activity_s is not None and activity_s <= _FRESH_S and activity not in ("", "cpu")
    return WorkerRow(
        pids=(process.pid,),
        label=clean(label, 24),
        ranks=(process.rank,) if process.rank else (),
        role=process.role,
        state=state,
        state_style=state_style,
        cpu=_steady(clock.cpu_percent) if clock and not process.gone else None,
        rss=sum(known) if known else None,
        read=_noticed(clock.read_rate) if clock and not process.gone else None,
        activity=activity,
        activity_s=activity_s,
        activity_style="ok" if fresh else ("" if process.role in _RANK_ROLES else "dim"),
        shards=len(process.shards.names) if process.shards else None,
        compilers=len(process.compilers),
        blocked=blocked,
        blocked_style=blocked_style,
        odd=odd and bool(process.rank),
        same_log=process.same_log,
    )


def last_activity(clock: ActivityClock | None, rank: Rank | None, t: float) -> tuple[str, int | None]:
    """The signal and age of the newest activity that counts; ("", age of the watch of it) when there was none."""
    if clock is None:
        return "", None
    mark = rank.last_mark if rank is not None else max(clock.marks, key=lambda mark: mark.t, default=None)
    if mark is None:
        return "", rough(t - clock.since_t)
    return signal_label(mark.signal, 12), rough(t - mark.t)


def blocked_in(process: Process, rank: Rank | None) -> tuple[str, str]:
    """What the process waits in, where that is known; else what its main thread is in."""
    if process.gone:
        return f"ended, seen by {clean(process.exit_source, 70)}" if process.exit_source else "ended", "bad"
    if process.tracer_pid:
        return f"traced by pid {process.tracer_pid}", "warn"
    if rank is not None and rank.wait.sure >= _TELLING:
        return clean(rank.wait.text, 120).removeprefix("waits in "), "warn" if rank.wait.kind in _LOCKS else ""
    call = process.call
    if call is not None:
        if call.number < 0 or not call.name:
            return (f"kernel: {clean(process.wchan, 40)}" if process.wchan else "in the kernel, no call"), "dim"
        target = clean(call.target, 80)
        return (f"{clean(call.name, 24)} {target}".strip()), "" if target else "dim"
    if process.wchan:
        return clean(process.wchan, 40), "dim"
    if process.state == "R":
        return _ON_CPU, "dim"
    if process.missing:
        return _NOT_PERMITTED, "dim"
    return ("a helper: not sampled" if process.role in _HELPER_ROLES else "not read"), "dim"


def _steady(cpu: float | None) -> float | None:
    """CPU percent; below one tenth of a core in steps of 5."""
    return cpu if cpu is None or cpu >= 10 else 5.0 * round(cpu / 5)


def _noticed(bytes_s: float | None) -> float | None:
    """A rate of reading; some bytes of /proc and pipes are none."""
    return 0.0 if bytes_s is not None and bytes_s < 1024 else bytes_s


def fold_rows(rows: Sequence[WorkerRow]) -> list[WorkerRow]:
    """Ranks that look the same become one row; the others stay."""
    groups: dict[tuple[object, ...], list[WorkerRow]] = {}
    for row in rows:
        groups.setdefault(row.fold_key, []).append(row)
    return [_fold(group) for group in groups.values()]


def _fold(group: list[WorkerRow]) -> WorkerRow:
    first = group[0]
    if len(group) == 1:
        return first
    ranks = tuple(rank for row in group for rank in row.ranks)
    stalest = max(group, key=lambda row: row.activity_s if row.activity_s is not None else -1)
    return first._replace(
        pids=tuple(pid for row in group for pid in row.pids),
        label=clean(rank_list(ranks), 24) or first.label,
        ranks=ranks,
        state="+".join(sorted({row.state for row in group}, reverse=True)),
        blocked=first.blocked if len({row.blocked for row in group}) == 1 else "various, z shows them",
        cpu=_most(row.cpu for row in group),
        rss=_most_int(row.rss for row in group),
        read=_sum(row.read for row in group),
        activity=stalest.activity,
        activity_s=stalest.activity_s,
        activity_style=stalest.activity_style,
        compilers=sum(row.compilers for row in group),
        node=first.node if len({row.node for row in group}) == 1 else plural(len({r.node for r in group}), "node"),
    )


def _most(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None


def _most_int(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def log_sentence(snapshot: Snapshot) -> tuple[str, str]:
    """Where stdout and stderr go, and whether all go to the same place: the first thing people ask."""
    server = snapshot.server
    if snapshot.nodes:
        return f"{plural(len(snapshot.ranks), 'rank')} on {plural(len(snapshot.nodes), 'node')}", "dim"
    processes = [p for p in snapshot.procs.processes if p.role in (*_RANK_ROLES, Role.LAUNCHER) and not p.gone]
    if server is None or not processes:
        return "", ""
    ranks = [p for p in processes if p.role == Role.WORKER or (p.role == Role.IMPORTING and p.rank)]
    if server.log_kind == "hidden":
        return "where the launcher and its ranks write: not permitted", "dim"
    elsewhere = [p for p in ranks if p.same_log is False]
    unknown = [p for p in ranks if p.same_log is None]
    path = clean(server.log_path, 120) or clean(server.log_kind or "nowhere known", 30)
    kind = f" ({server.log_kind})" if server.log_kind and server.log_kind != path else ""
    if elsewhere:
        who = rank_list([p.rank for p in elsewhere])
        target = clean(next((s for s in elsewhere[0].stdio[1:] if s), None) or "elsewhere", 80)
        return f"{who} writes ELSEWHERE than the launcher: {target}", "warn"
    if unknown and len(unknown) == len(ranks):
        return f"launcher writes to {path}{kind}; the ranks' targets: not permitted", "dim"
    same = len(ranks) - len(unknown)
    some = f", {len(unknown)} not permitted" if unknown else ""
    if not ranks:
        return f"launcher writes to {path}{kind}", "dim"
    return f"{plural(same, 'rank')} + launcher write to {path}{kind}{some}", "dim"
