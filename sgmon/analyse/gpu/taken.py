"""What the ranks took of their GPUs, by the log: the numbers that a plan is held against and learns from."""

from __future__ import annotations

from collections.abc import Iterable

from sgmon.analyse.gpu.summary import GIB, Plan, plan_of
from sgmon.model import Milestone, Snapshot
from sgmon.model.plan import MemoryTaken


def taken(snapshot: Snapshot) -> MemoryTaken | None:
    """The most that a rank of this node took of each kind; None: the log says nothing of it."""
    milestones = snapshot.log.milestones
    ranks = dict.fromkeys(one.rank for one in milestones if one.name == "load_end")
    found = [_of_rank(snapshot, milestones, rank) for rank in ranks]
    most = MemoryTaken(
        context_bytes=_most(one.context_bytes for one in found),
        weights_bytes=_most(one.weights_bytes for one in found),
        kv_bytes=_most(one.kv_bytes for one in found),
        graph_bytes=_most(one.graph_bytes for one in found),
    )
    return None if most == MemoryTaken() else most


def _of_rank(snapshot: Snapshot, milestones: tuple[Milestone, ...], rank: str) -> MemoryTaken:
    ranks = (rank,) if rank else ()
    plan = plan_of(milestones, ranks)
    return MemoryTaken(_context(snapshot, milestones, ranks), *(_whole(value) for value in _parts(plan)))


def _parts(plan: Plan) -> tuple[float | None, ...]:
    return plan.weights_bytes, plan.kv_bytes, plan.graph_bytes


def _context(snapshot: Snapshot, milestones: Iterable[Milestone], ranks: tuple[str, ...]) -> int | None:
    """The card less what was free before the load; None: not printed, or others hold some of it, or cards differ."""
    usable = {gpu.total_bytes - (gpu.reserved_bytes or 0) for gpu in snapshot.gpu.gpus if gpu.total_bytes is not None}
    if len(usable) != 1 or any(not one.rank for gpu in snapshot.gpu.gpus for one in gpu.processes):
        return None
    lines = (one for one in milestones if one.name == "load_begin" and (not ranks or one.rank in ranks))
    free = next((dict(one.fields).get("gb") for one in lines), None)
    if free is None:
        return None
    left = usable.pop() - round(float(free) * GIB)
    return left if left >= 0 else None


def _whole(value: float | None) -> int | None:
    return None if value is None or value < 0 else round(value)


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
