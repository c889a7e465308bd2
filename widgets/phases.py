"""Which rank is in which phase: pure functions from a snapshot to rows, equal ranks folded into one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sgmon.analyse.phase_times import phase_seconds
from sgmon.model import Process, RankProgress, Role, Snapshot
from sgmon.servers import registry
from sgmon.servers.phases import Phase, PhaseTable
from sgmon.text import clean
from sgmon.units import rough

DONE, NOW, NEXT, NOT_YET, NOT_OURS, UNKNOWN = "done", "now", "next", "not yet", "not ours", "unknown"

_UNKNOWN_PHASE = "phase unknown: no log"


class RankRow(NamedTuple):
    """One row of the matrix: a group of ranks in the same place."""

    ranks: tuple[str, ...]
    cells: tuple[str, ...]  # one of DONE, NOW, NEXT, NOT_YET, NOT_OURS, UNKNOWN per column
    last: str  # last milestone, or words
    for_s: int | None  # since that milestone
    odd: bool = False
    kind: str = "rank"  # rank | importing | main
    nodes: tuple[str, ...] = ()  # where each node has a server of its own: whose ranks these are


def natural_key(text: str) -> tuple[object, ...]:
    """TP2 before TP10."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text))


def phase_table(snapshot: Snapshot) -> PhaseTable:
    """The phases of the watched server's family."""
    return registry.get(snapshot.family).phases


def columns_for(snapshot: Snapshot) -> tuple[Phase, ...]:
    """The phases that get a column: the usual ones of the family, and those that only some starts have when seen."""
    seen = {milestone.phase for milestone in snapshot.log.milestones} | {snapshot.log.phase}
    return tuple(p for p in phase_table(snapshot).phases if p.column and (not p.optional or p.name in seen))


def rank_rows(snapshot: Snapshot) -> tuple[RankRow, ...]:
    """Ranks by phase, equal ones folded, odd ones apart; the launcher last. Each of several servers has its own."""
    if snapshot.has_own_servers:
        return _rows_of_servers(snapshot)
    return _rows_of_one(snapshot, columns_for(snapshot))


def _rows_of_servers(snapshot: Snapshot) -> tuple[RankRow, ...]:
    """The rows of each node's server; equal ones of several nodes folded. Two servers may have a TP0 each."""
    columns, verdict = columns_for(snapshot), snapshot.verdict
    groups: dict[RankRow, list[tuple[str, RankRow]]] = {}
    for view in snapshot.nodes:
        if view.server is None:
            continue
        odd = verdict.odd_ranks if view.name in verdict.nodes else ()
        part = replace(view.snapshot, t=snapshot.t, verdict=replace(view.snapshot.verdict, odd_ranks=odd))
        for row in _rows_of_one(part, columns):
            row = row if view.heard else row._replace(last="no word from its node", for_s=None)
            groups.setdefault(row._replace(for_s=None), []).append((clean(view.name, 24) or "here", row))
    rows = (
        _fold([row for _, row in group])._replace(ranks=group[0][1].ranks, nodes=tuple(name for name, _ in group))
        for group in groups.values()
    )
    return tuple(sorted(rows, key=lambda row: (not row.odd, row.kind == "main")))


def _rows_of_one(snapshot: Snapshot, columns: tuple[Phase, ...]) -> tuple[RankRow, ...]:
    progress = {item.rank: item for item in snapshot.log.ranks}
    importing = {rank.name for rank in snapshot.ranks if rank.importing}
    ranks = _rank_names(snapshot, progress)
    single = ranks == [""]
    odd = set(snapshot.verdict.odd_ranks)
    main_phase = _main_phase(snapshot)
    groups: dict[tuple[object, ...], list[RankRow]] = {}
    for rank in ranks:
        row = _row(snapshot, rank, progress.get(rank), rank in importing, columns, single, main_phase, rank in odd)
        groups.setdefault((row.cells, row.last, row.odd, row.kind), []).append(row)
    folded = [_fold(rows) for rows in _join_leaders(list(groups.values()), phase_table(snapshot))]
    if not single:
        folded.append(_main_row(snapshot, columns, main_phase))
    return tuple(folded)


def _join_leaders(groups: list[list[RankRow]], table: PhaseTable) -> list[list[RankRow]]:
    """A leading rank that differs only by a line that no other rank prints belongs to the others."""
    for group in [g for g in groups if table.is_leader_only(g[0].last) and len(groups) > 1]:
        for home in groups:
            same = (home[0].cells, home[0].odd, home[0].kind) == (group[0].cells, group[0].odd, group[0].kind)
            if home is not group and same:
                group[:] = [row._replace(last=home[0].last) for row in group]
                home[:] = sorted([*home, *group], key=lambda row: natural_key(row.ranks[0]))
                groups.remove(group)
                break
    return sorted(groups, key=lambda rows: natural_key(rows[0].ranks[0]))


def _fold(rows: list[RankRow]) -> RankRow:
    ages = [row.for_s for row in rows if row.for_s is not None]
    names = tuple(name for row in rows for name in row.ranks)
    return rows[0]._replace(ranks=names, for_s=max(ages) if ages else None)


def _rank_names(snapshot: Snapshot, progress: dict[str, RankProgress]) -> list[str]:
    names = {rank for rank in progress if rank}
    names |= {rank.name for rank in snapshot.ranks if rank.name}
    if not names and snapshot.server is not None and snapshot.server.args.tp > 1:
        args = snapshot.server.args
        first = args.node_rank * (args.tp // max(1, args.nnodes)) if args.nnodes > 1 else 0
        names = {f"TP{first + i}" for i in range(max(1, args.tp // max(1, args.nnodes)))}
    return sorted(names, key=natural_key) or [""]


def _row(
    snapshot: Snapshot,
    rank: str,
    last: RankProgress | None,
    is_importing: bool,
    columns: tuple[Phase, ...],
    single: bool,
    main_phase: str,
    odd: bool,
) -> RankRow:
    mine = [phase for phase in columns if single or not phase.launcher]
    if last is None or last.phase in ("", "launch"):
        words, kind = (
            ("importing (normal, no log lines)", "importing") if is_importing else (_without_line(snapshot), "rank")
        )
        if snapshot.log.ready_line is not None and not single:
            words, at, ended, kind = "all done", len(mine), True, "rank"
        else:
            at = 0 if snapshot.log.phase else _place(phase_table(snapshot), mine, snapshot.phase)
            ended = not snapshot.log.phase and snapshot.phase in ("ready", "serving")
        for_s = None
    else:
        at = _place(phase_table(snapshot), mine, last.phase)
        ended = last.event == "end" or last.phase in ("ready", "serving", "scheduler_ready")
        words, kind, for_s = last.milestone, "rank", _age_of(snapshot, last)
        if (main_phase and not single) or _serves_without_http(snapshot):
            at, ended, words, for_s = len(mine), True, "all done", None
    if last is None and not is_importing and _is_unknown(snapshot):
        own = tuple(UNKNOWN if phase in mine else NOT_OURS for phase in columns)
        return RankRow((rank,), own, _UNKNOWN_PHASE, None, odd)
    cells = []
    following = phase_table(snapshot).after(last.phase) if last is not None and ended else ""
    for index, phase in enumerate(columns):
        if phase not in mine:
            cells.append(NOT_OURS)
        elif index < at or (index == at and ended):
            cells.append(DONE)
        elif index == at:
            cells.append(NOW)
        elif phase.name == following:
            cells.append(NEXT)
        else:
            cells.append(NOT_YET)
    return RankRow((rank,), tuple(cells), words, for_s, odd, kind)


def _is_unknown(snapshot: Snapshot) -> bool:
    """Whether the verdict names no phase because neither a log nor a stack proves one."""
    verdict = snapshot.verdict
    return snapshot.phase_source == "proc" and bool(verdict.rule) and verdict.state != "waiting" and not verdict.phase


def _without_line(snapshot: Snapshot) -> str:
    """Why a rank has no milestone: it has printed none, or there is no log to read it in."""
    log = snapshot.log
    return "no log line yet" if log.path and log.change not in ("missing", "unreadable") else "no log is read"


def _main_row(snapshot: Snapshot, columns: tuple[Phase, ...], main_phase: str) -> RankRow:
    if _is_unknown(snapshot) and not _has_no_launcher(snapshot.procs.processes):
        unknown = tuple(UNKNOWN if phase.launcher else NOT_OURS for phase in columns)
        return RankRow(("launcher",), unknown, _UNKNOWN_PHASE, None, False, "main")
    cells = []
    own = [phase.name for phase in columns if phase.launcher]
    at = own.index(main_phase) if main_phase in own else -1
    ready = snapshot.log.ready_line is not None or main_phase in ("ready", "serving")
    for phase in columns:
        if not phase.launcher:
            cells.append(NOT_OURS)
        elif ready or own.index(phase.name) < at:
            cells.append(DONE)
        else:
            cells.append(NOW if own.index(phase.name) == at else NOT_YET)
    if is_gone(snapshot):
        words = "has ended"
    elif ready:
        words = "serves"
    elif at >= 0:
        words = "its own phases now"
    elif snapshot.verdict.state in ("crashed", "ended"):
        words = "has not ended yet"
    else:
        usual = snapshot.verdict.state in ("progressing", "slow", "will-fail", "waiting-by-design")
        words = "waits for the ranks" + (" (normal)" if usual else "")
    return RankRow(("launcher",), tuple(cells), words, None, False, "main")


def _main_phase(snapshot: Snapshot) -> str:
    """How far the launcher is: one of its own phases, or "" while it waits for the ranks."""
    if snapshot.log.ready_line is not None or _serves_without_http(snapshot):
        return "ready"
    if phase_table(snapshot).of(snapshot.log.phase).launcher:
        return snapshot.log.phase
    if snapshot.log.http_up_line is not None:
        return "warmup"
    shown = "" if snapshot.log.phase else snapshot.phase  # of stacks, processes and the port, where there is no log
    return "ready" if shown == "serving" else shown if phase_table(snapshot).of(shown).launcher else ""


def _serves_without_http(snapshot: Snapshot) -> bool:
    """An engine in a program of the user's own is ready, of which no line will tell."""
    return snapshot.server is not None and snapshot.server.in_program and snapshot.phase == "serving"


def _place(table: PhaseTable, columns: Sequence[Phase], name: str) -> int:
    """The column of a phase; a phase without one counts as the last column before it."""
    usual = [phase.name for phase in table.phases]
    if name not in usual:
        return 0
    before = set(usual[: usual.index(name) + 1])
    after_all = table.of(name).launcher and not table.of(name).column
    return len(columns) if after_all else max((i for i, p in enumerate(columns) if p.name in before), default=0)


def _age_of(snapshot: Snapshot, last: RankProgress) -> int | None:
    at = snapshot.passed_t(last)
    return None if at is None else rough(snapshot.t - at)


def phase_times(snapshot: Snapshot) -> tuple[tuple[str, int], ...]:
    """How long each finished phase took, over all ranks: from its first line to the first line of a later one."""
    passed = (
        (m.phase, snapshot.passed_t(m)) for m in snapshot.log.milestones if phase_table(snapshot).order(m.phase) >= 0
    )
    dated = ((phase, t) for phase, t in passed if t is not None)
    return tuple((phase, int(took_s)) for phase, took_s in phase_seconds(dated))


def has_ended(snapshot: Snapshot) -> bool:
    """Whether processes were watched and none is left, on any node."""
    parts = [part for _, part in snapshot.parts if part.clocks]
    return bool(parts) and not any(process.alive for part in parts for process in part.procs.processes)


def is_gone(snapshot: Snapshot) -> bool:
    """Whether the launcher, or all of the server, is seen to be gone."""
    return _has_no_launcher(snapshot.procs.processes) or has_ended(snapshot)


def _has_no_launcher(processes: tuple[Process, ...]) -> bool:
    """Whether the launcher is seen to be gone (not: not seen yet)."""
    launcher = next((p for p in processes if p.role == Role.LAUNCHER), None)
    if launcher is not None:
        return not launcher.alive
    return bool(processes) and not any(process.alive for process in processes)
