"""Which rank is in which phase: pure functions from a snapshot to rows, equal ranks folded into one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from sgmon.analyse.phase_times import phase_seconds
from sgmon.model import Process, RankProgress, Role, Snapshot
from widgets.ages import rough

#: phases in their usual order with a long and a short column name
COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("spawn", "spawn", "spwn"),
    ("dist_init", "dist", "dist"),
    ("weights", "weights", "wght"),
    ("kv_cache", "kv", "kv"),
    ("graphs", "graphs", "grph"),
    ("draft_dist_init", "d.dist", "d.di"),
    ("draft_weights", "d.weights", "d.we"),
    ("draft_kv_cache", "d.kv", "d.kv"),
    ("draft_graphs", "d.graphs", "d.gr"),
    ("scheduler_ready", "sched", "schd"),
    ("disagg", "disagg", "disg"),
    ("http", "http", "http"),
    ("warmup", "warmup", "warm"),
    ("ready", "ready", "redy"),
)
_ORDER = {name: index for index, (name, _, _) in enumerate(COLUMNS)}
#: shown only when the log speaks of them
_OPTIONAL = {"draft_dist_init", "draft_weights", "draft_kv_cache", "draft_graphs", "disagg"}
#: milestones that only a leading rank prints: no difference between ranks
_LEADER_ONLY = {"nccl_comm", "weights_format", "weights_progress", "weights_100", "kv_profile", "graph_progress"}
_LEADER_ONLY |= {f"draft_{name}" for name in _LEADER_ONLY} | {"custom_ar_disabled", "mq_connect"}
#: these belong to the launcher, not to a rank
MAIN_PHASES = ("http", "warmup", "ready")

DONE, NOW, NEXT, NOT_YET, NOT_OURS = "done", "now", "next", "not yet", "not ours"


class RankRow(NamedTuple):
    """One row of the matrix: a group of ranks in the same place."""

    ranks: tuple[str, ...]
    cells: tuple[str, ...]  # one of DONE, NOW, NEXT, NOT_YET, NOT_OURS per column
    last: str  # last milestone, or words
    for_s: int | None  # since that milestone
    odd: bool = False
    kind: str = "rank"  # rank | importing | main


def natural_key(text: str) -> tuple[object, ...]:
    """TP2 before TP10."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text))


def columns_for(snapshot: Snapshot) -> tuple[str, ...]:
    """The phases that get a column: the usual ones, and those of a draft model when it has any."""
    seen = {milestone.phase for milestone in snapshot.log.milestones} | {snapshot.log.phase}
    return tuple(name for name, _, _ in COLUMNS if name not in _OPTIONAL or name in seen)


def rank_rows(snapshot: Snapshot) -> tuple[RankRow, ...]:
    """Ranks by phase, equal ones folded, odd ones apart; the launcher last."""
    columns = columns_for(snapshot)
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
    folded = [_fold(rows) for rows in _join_leaders(list(groups.values()))]
    if not single:
        folded.append(_main_row(snapshot, columns, main_phase))
    return tuple(folded)


def _join_leaders(groups: list[list[RankRow]]) -> list[list[RankRow]]:
    """A leading rank that differs only by a line that no other rank prints belongs to the others."""
    for group in [g for g in groups if g[0].last in _LEADER_ONLY and len(groups) > 1]:
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
    columns: tuple[str, ...],
    single: bool,
    main_phase: str,
    odd: bool,
) -> RankRow:
    mine = [name for name in columns if single or name not in MAIN_PHASES]
    if last is None or last.phase in ("", "launch"):
        words, kind = (
            ("importing (normal, no log lines)", "importing") if is_importing else ("no log line yet", "rank")
        )
        if snapshot.log.ready_line is not None and not single:
            words, at, ended, kind = "all done", len(mine), True, "rank"
        else:
            at, ended = 0, False
        for_s = None
    else:
        at = _place(mine, last.phase)
        ended = last.event == "end" or last.phase in ("ready", "serving", "scheduler_ready")
        words, kind, for_s = last.milestone, "rank", _age_of(snapshot, last)
        if main_phase in MAIN_PHASES and not single:
            at, ended, words, for_s = len(mine), True, "all done", None
    cells = []
    for index, name in enumerate(columns):
        if name not in mine:
            cells.append(NOT_OURS)
        elif index < at or (index == at and ended):
            cells.append(DONE)
        elif index == at:
            cells.append(NOW)
        elif index == at + 1 and ended:
            cells.append(NEXT)
        else:
            cells.append(NOT_YET)
    return RankRow((rank,), tuple(cells), words, for_s, odd, kind)


def _main_row(snapshot: Snapshot, columns: tuple[str, ...], main_phase: str) -> RankRow:
    cells = []
    at = MAIN_PHASES.index(main_phase) if main_phase in MAIN_PHASES else -1
    ready = snapshot.log.ready_line is not None or main_phase in ("ready", "serving")
    for name in columns:
        if name not in MAIN_PHASES:
            cells.append(NOT_OURS)
        elif ready or MAIN_PHASES.index(name) < at:
            cells.append(DONE)
        else:
            cells.append(NOW if MAIN_PHASES.index(name) == at else NOT_YET)
    if _has_no_launcher(snapshot.procs.processes) or has_ended(snapshot):
        words = "has ended"
    elif ready:
        words = "serves"
    elif at >= 0:
        words = "its own phases now"
    else:
        usual = snapshot.verdict.state in ("progressing", "slow", "waiting-by-design")
        words = "waits for the ranks" + (" (normal)" if usual else "")
    return RankRow(("launcher",), tuple(cells), words, None, False, "main")


def _main_phase(snapshot: Snapshot) -> str:
    """How far the launcher is: one of MAIN_PHASES, or "" while it waits for the ranks."""
    if snapshot.log.ready_line is not None:
        return "ready"
    if snapshot.log.phase in MAIN_PHASES:
        return snapshot.log.phase
    if snapshot.log.http_up_line is not None:
        return "warmup"
    return ""


def _place(columns: Iterable[str], phase: str) -> int:
    """The column of a phase; a phase without one counts as the last column before it."""
    order = _ORDER.get(phase)
    names = list(columns)
    if phase in names:
        return names.index(phase)
    if phase == "serving":
        return len(names)
    if order is None:
        return 0
    return max((i for i, name in enumerate(names) if _ORDER[name] <= order), default=0)


def _age_of(snapshot: Snapshot, last: RankProgress) -> int | None:
    at = snapshot.passed_t(last)
    return None if at is None else rough(snapshot.t - at)


def phase_times(snapshot: Snapshot) -> tuple[tuple[str, int], ...]:
    """How long each finished phase took, over all ranks: from its first line to the first line of a later one."""
    passed = ((m.phase, snapshot.passed_t(m)) for m in snapshot.log.milestones if m.phase in _ORDER)
    dated = ((phase, t) for phase, t in passed if t is not None)
    return tuple((phase, int(took_s)) for phase, took_s in phase_seconds(dated))


def has_ended(snapshot: Snapshot) -> bool:
    """Whether processes were watched and none is left."""
    return bool(snapshot.clocks) and not any(process.alive for process in snapshot.procs.processes)


def _has_no_launcher(processes: tuple[Process, ...]) -> bool:
    """Whether the launcher is seen to be gone (not: not seen yet)."""
    launcher = next((p for p in processes if p.role == Role.LAUNCHER), None)
    if launcher is not None:
        return not launcher.alive
    return bool(processes) and not any(process.alive for process in processes)
