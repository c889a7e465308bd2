"""The snapshots of all nodes as one: the head node's, with the ranks, the log's facts and the stacks of all.

What belongs to one machine (GPUs, port, processes, RAS) is the head's; that of each node is in ``Snapshot.nodes``.
Parts of a node are made again only when that node has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from sgmon.analyse.stacks.merge import merge as merge_stacks
from sgmon.analyse.stacks.rules import rules_of
from sgmon.model import (
    ActivityClock,
    LogState,
    Milestone,
    NodeView,
    Rank,
    RankProgress,
    RankState,
    Snapshot,
    StackDump,
    StacksReading,
    StackView,
)
from sgmon.model.roles import Role
from sgmon.patterns import regex
from sgmon.servers import registry
from sgmon.servers.phases import PhaseTable

_NUMBERS = regex(r"(\d+)")
#: roles whose process is a rank or will be one
_RANKED = frozenset({Role.WORKER, Role.IMPORTING})

#: (has a name, its parts with numbers as numbers, node): comparable whatever the names are
SortKey = tuple[int, tuple[tuple[bool, int, str], ...], str]


class Part(Struct, frozen=True):
    """What one node gives to the whole. shift_s: its wall clock minus the head's. helpers: clocks of processes that
    are no ranks; their pid is -1: it means nothing beside those of another machine."""

    view: NodeView
    shift_s: float
    ranks: tuple[Rank, ...]
    keys: tuple[SortKey, ...]
    milestones: tuple[Milestone, ...]
    progress: tuple[RankProgress, ...]
    helpers: tuple[ActivityClock, ...]


class Parts:
    """The parts of all nodes, each kept until its node changes."""

    def __init__(self) -> None:
        self._known: dict[str, Part] = {}

    def of(self, views: Sequence[NodeView], head: NodeView) -> list[Part]:
        """One a node, in their order."""
        return [self._part(view, view.snapshot.epoch - head.snapshot.epoch) for view in views]

    def _part(self, view: NodeView, shift_s: float) -> Part:
        old = self._known.get(view.name)
        if old is None or old.view is not view or old.shift_s != shift_s:
            old = self._known[view.name] = _part(view, shift_s, old)
        return old


def _part(view: NodeView, shift_s: float, old: Part | None) -> Part:
    snapshot = view.snapshot
    before = old.view.snapshot if old is not None else None
    same = before is not None and old is not None and old.view.heard == view.heard
    if same and before is not None and old is not None and before.ranks is snapshot.ranks:
        ranks, keys = old.ranks, old.keys
    else:
        ranks = tuple(_tagged(rank, view) for rank in snapshot.ranks)
        keys = tuple(_key(rank) for rank in ranks)
    log, log_before = snapshot.log, before.log if before is not None else None
    if old is not None and log_before is log and old.shift_s == shift_s:
        milestones, progress = old.milestones, old.progress
    else:
        milestones = _shifted(log.milestones, old.milestones if old is not None else (), log_before, shift_s, old)
        progress = tuple(replace(one, t=None if one.t is None else one.t - shift_s) for one in log.ranks)
    pids = {rank.pid for rank in snapshot.ranks}
    helpers = tuple(replace(clock, pid=-1) for clock in snapshot.clocks if clock.pid not in pids)
    return Part(view, shift_s, ranks, keys, milestones, progress, helpers)


def _shifted(
    all_of: tuple[Milestone, ...],
    made: tuple[Milestone, ...],
    before: LogState | None,
    shift_s: float,
    old: Part | None,
) -> tuple[Milestone, ...]:
    """Milestones by the head's clock. A log grows at its end: what was made for its beginning is kept."""
    grown = before is not None and old is not None and old.shift_s == shift_s
    kept = len(made) if grown and before is not None and all_of[: len(made)] == before.milestones else 0
    fresh = (replace(m, t=None if m.t is None else m.t - shift_s) for m in all_of[kept:])
    return (*made[:kept], *fresh)


def _tagged(rank: Rank, view: NodeView) -> Rank:
    """With its node. Of a node that is silent nothing is known: its ranks are neither stopped nor gone."""
    state = rank.state if view.heard else RankState.UNKNOWN
    return replace(rank, node=view.name, state=state, label=f"{view.name} {rank.label}".lstrip())


def _key(rank: Rank) -> SortKey:
    """Ranks in the order of their names (TP2 before TP10), whatever their node; other processes before them."""
    return int(rank.role in _RANKED and bool(rank.name)), _pieces(rank.name), rank.node


@lru_cache(maxsize=4096)
def _pieces(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Of a name, its numbers as numbers: the same few names come with every reading."""
    return tuple((p.isdigit(), int(p) if p.isdigit() else 0, p) for p in _NUMBERS.split(name))


def head_of(views: Sequence[NodeView]) -> NodeView:
    """Node rank 0 of the server, or the first node with a server, or the first node."""
    served = [view for view in views if view.server is not None]
    return next(filter(leads, served), served[0] if served else views[0])


def leads(view: NodeView) -> bool:
    """Whether it is the node that serves, and can tell for the whole."""
    server = view.server
    return server is not None and server.args_known and server.args.node_rank == 0 and not server.args.headless


def merged(snapshot: Snapshot, parts: Sequence[Part], head: NodeView) -> Snapshot:
    """The whole; verdict, times of the watch and what was said before are those of ``snapshot``."""
    own = head.snapshot
    phase = phase_of(parts, registry.get(own.family).phases)
    return replace(
        own,
        t=snapshot.t,
        nodes=tuple(part.view for part in parts),
        compared=snapshot.compared,
        ranks=all_ranks(parts),
        phase=phase or own.phase,
        log=_log(own.log, parts),
        stacks=_stacks(parts),
        stack_views=_stack_views(parts, head, snapshot),
        stacks_request=_newest_request(parts),
        probes=(*own.probes, *snapshot.probes),
        verdict=snapshot.verdict,
        verdicts=snapshot.verdicts,
        saved=snapshot.saved,
        replay=snapshot.replay,
    )


def all_ranks(parts: Iterable[Part]) -> tuple[Rank, ...]:
    """In the order of their names."""
    parts = tuple(parts)
    keys = list(chain.from_iterable(part.keys for part in parts))
    ranks = list(chain.from_iterable(part.ranks for part in parts))
    return tuple([ranks[at] for at in sorted(range(len(keys)), key=keys.__getitem__)])


def phase_of(parts: Iterable[Part], table: PhaseTable) -> str:
    """Of the node that is furthest behind, among those that are heard and have ranks."""
    known = [p.view.snapshot.phase for p in parts if p.view.heard and p.view.server is not None]
    return min((phase for phase in known if phase), key=table.order, default="")


def _log(own: LogState, parts: Sequence[Part]) -> LogState:
    """The head's log with the progress of all ranks. Line numbers are those of each node's own log."""
    logs = [part.view.snapshot.log for part in parts]
    if len(logs) == 1:
        return own
    return replace(
        own,
        lines=sum(log.lines for log in logs),
        size=sum(log.size or 0 for log in logs) or own.size,
        last_byte_t=_newest(log.last_byte_t for log in logs),
        last_activity_t=_newest(log.last_activity_t for log in logs),
        milestones=tuple(chain.from_iterable(part.milestones for part in parts)),
        ranks=tuple(chain.from_iterable(part.progress for part in parts)),
        bars=tuple(bar for log in logs for bar in log.bars),
        error=next((log.error for log in (own, *logs) if log.error is not None), None),
        warnings=sum(log.warnings for log in logs),
        errors=sum(log.errors for log in logs),
        noise=sum(log.noise for log in logs),
    )


def _newest(times: Iterable[float | None]) -> float | None:
    return max((t for t in times if t is not None), default=None)


def _stacks(parts: Sequence[Part]) -> tuple[StackDump, ...]:
    """Of all nodes. Where two nodes have ranks of the same name (servers of their own), the node is in the name."""
    owners: dict[str, set[str]] = {}
    for part in parts:
        for dump in part.view.snapshot.stacks:
            owners.setdefault(dump.rank, set()).add(part.view.name)
    return tuple(
        replace(dump, rank=f"{part.view.name} {dump.rank}".strip()) if len(owners[dump.rank]) > 1 else dump
        for part in parts
        for dump in part.view.snapshot.stacks
    )


def _newest_request(parts: Sequence[Part]) -> StacksReading | None:
    readings = [r for part in parts if (r := part.view.snapshot.stacks_request) is not None]
    newest = max(readings, key=lambda reading: reading.request, default=None)
    if newest is None:
        return None
    done = all(reading.done for reading in readings if reading.request == newest.request)
    return replace(newest, done=done)


def _stack_views(parts: Sequence[Part], head: NodeView, before: Snapshot) -> tuple[StackView, ...]:
    """The dumps of each request of all nodes, merged; kept as they were while no node has new ones."""
    own = [(part.view.name, part.view.snapshot.stack_views) for part in parts if part.view.snapshot.stack_views]
    if len(own) < 2:
        return own[0][1] if own else ()
    old = {view.name: view.snapshot.stacks for view in before.nodes}
    if before.stack_views and all(old.get(p.view.name) is p.view.snapshot.stacks for p in parts):
        return before.stack_views
    rules = rules_of(head.server)
    numbers = sorted({view.request for _, views in own for view in views})
    dumps = _stacks(parts)
    found = []
    for number in numbers:
        changes = tuple(
            change for _, views in own for view in views if view.request == number for change in view.changes
        )
        these = [dump for dump in dumps if dump.request == number and not dump.error]
        found.append(StackView(number, merge_stacks(these, rules), changes))
    return tuple(found[-4:])
