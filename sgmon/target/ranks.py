"""Which scheduler is which before it has a title: by its place in the order of births.

Order of births and rank ranges: sglang 0.5.23 entrypoints/engine.py (``_launch_scheduler_processes``,
``_calculate_rank_ranges``) and managers/data_parallel_controller.py; the prefix: managers/scheduler.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sgmon.model import ServerArgs


@dataclass(frozen=True, slots=True)
class Child:
    """One child of the launcher or of the DP controller, alive or not, in birth order. rank None: no title yet."""

    pid: int
    role: str
    rank: str | None = None


def expected(args: ServerArgs, version: str = "") -> tuple[str, ...]:
    """The ranks of this node in the order in which they are born, pp outer and tp inner (DP replicas outermost)."""
    if args.dp > 1 and not args.dp_attention:
        return tuple(_label(args, version, dp, pp, tp) for dp in range(args.dp) for pp, tp in _local(args))
    group = max(1, args.tp // args.dp) if args.dp_attention else 0
    return tuple(_label(args, version, tp // group if group else None, pp, tp) for pp, tp in _local(args))


def infer(children: Sequence[Child], ranks: Sequence[str]) -> dict[int, str]:
    """pid -> rank for the importing children among ``children``. Those that come after all schedulers (the
    detokenizer) get none. Titles seen so far are obeyed: no rank is given twice."""
    workers = [child for child in children if child.role in ("importing", "scheduler")]
    taken = {child.rank for child in workers if child.rank is not None}
    by_place = dict(zip((child.pid for child in workers), ranks, strict=False))
    agrees = all(child.rank is None or by_place.get(child.pid) == child.rank for child in workers)
    if agrees:
        return {child.pid: by_place[child.pid] for child in workers if child.rank is None and child.pid in by_place}
    free = [rank for rank in ranks if rank not in taken]
    untitled = [child.pid for child in workers if child.rank is None]
    return dict(zip(untitled, free, strict=False))


def _local(args: ServerArgs) -> list[tuple[int, int]]:
    """(pp, tp) of this node. pp ranks are spread over the nodes first, the rest of a node's share is tp."""
    nodes_per_pp = max(1, args.nnodes // args.pp)
    pp_per_node = max(1, args.pp // args.nnodes)
    first_pp = pp_per_node * (args.node_rank // nodes_per_pp)
    tp_per_node = max(1, args.tp // nodes_per_pp)
    first_tp = tp_per_node * (args.node_rank % nodes_per_pp)
    return [
        (pp, tp) for pp in range(first_pp, first_pp + pp_per_node) for tp in range(first_tp, first_tp + tp_per_node)
    ]


def _label(args: ServerArgs, version: str, dp: int | None, pp: int, tp: int) -> str:
    """The tokens in the order of this version; sizes of 1 are not printed (since 0.4.6)."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    tokens = [f"DP{dp}"] if dp is not None else []
    shown_tp = [f"TP{tp}"] if args.tp > 1 or (numbers and numbers < (0, 4, 6)) else []
    shown_pp = [f"PP{pp}"] if args.pp > 1 else []
    shown_ep = [f"EP{tp // max(1, args.tp // args.ep)}"] if args.ep > 1 else []
    if numbers and numbers < (0, 5, 5):
        return " ".join(tokens + shown_tp + shown_ep + shown_pp)
    return " ".join(tokens + shown_pp + shown_tp + shown_ep)
