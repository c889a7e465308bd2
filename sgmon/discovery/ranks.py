"""Which worker is which before it has a title: by its place in the order of births.

Order of births and rank ranges: sglang 0.5.23 entrypoints/engine.py (``_launch_weight_cache_daemons``,
``_launch_scheduler_processes``, ``_calculate_rank_ranges``) and managers/data_parallel_controller.py; the prefix:
managers/scheduler.py of 0.4.1.post7 ... 0.5.23.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sgmon.model import ServerArgs


class Slot(NamedTuple):
    """A place in the order of births: what is born there."""

    role: str
    rank: str = ""


class Child(NamedTuple):
    """A child of the launcher or of the DP controller, alive or not. slot None: it has no title yet."""

    pid: int
    slot: Slot | None = None


def of_launcher(args: ServerArgs, version: str = "") -> tuple[Slot, ...]:
    """What the launcher bears, in order: weight-cache daemons, schedulers or DP controller, detokenizer."""
    ranks = [Slot("scheduler", rank) for rank in rank_labels(args, version)]
    slots = []
    if dict(args.raw).get("weight_cache_mode") == "daemon":
        slots += [Slot("weight_cache", slot.rank) for slot in ranks]
    if args.dp > 1:
        slots += [*ranks, Slot("dp_controller")] if _prelaunched(args, version) else [Slot("dp_controller")]
    else:
        slots += ranks
    if args.node_rank == 0:
        slots.append(Slot("detokenizer"))
    return tuple(slots)


def of_controller(args: ServerArgs, version: str = "") -> tuple[Slot, ...]:
    """What the DP controller bears: the schedulers, unless the launcher has borne them."""
    if _prelaunched(args, version):
        return ()
    return tuple(Slot("scheduler", rank) for rank in rank_labels(args, version))


def infer(children: Sequence[Child], slots: Sequence[Slot]) -> dict[int, Slot]:
    """pid -> slot for the untitled among ``children`` (in birth order). Titles are obeyed: where one stands in
    another place than expected, the untitled get what the titles leave over, in order."""
    placed = list(zip(children, slots, strict=False))
    if all(child.slot is None or same(child.slot, slot) for child, slot in placed):
        return {child.pid: slot for child, slot in placed if child.slot is None}
    left = list(slots)
    for child in children:
        taken = next((slot for slot in left if child.slot is not None and same(child.slot, slot)), None)
        if taken is not None:
            left.remove(taken)
    untitled = [child.pid for child in children if child.slot is None]
    return dict(zip(untitled, left, strict=False))


def same(one: Slot, other: Slot) -> bool:
    """Whether both name the same worker; one may carry a token more (EP is not always in the arguments)."""
    ours, theirs = set(one.rank.split()), set(other.rank.split())
    return one.role == other.role and (ours <= theirs or theirs <= ours)


def rank_labels(args: ServerArgs, version: str = "") -> tuple[str, ...]:
    """The ranks of this node in the order in which they are born: pp outer, tp inner, DP replicas outermost."""
    if args.dp > 1 and not args.dp_attention:
        return tuple(_label(args, version, dp, pp, tp) for dp in range(args.dp) for pp, tp in _local(args))
    group = max(1, args.tp // args.dp) if args.dp_attention and args.dp > 1 else 0
    return tuple(_label(args, version, tp // group if group else None, pp, tp) for pp, tp in _local(args))


def _prelaunched(args: ServerArgs, version: str) -> bool:
    """Since 0.5.22 the launcher bears the schedulers of DP attention itself, before the controller."""
    return args.dp_attention and args.dp > 1 and (not version or _numbers(version) >= (0, 5, 22))


def _local(args: ServerArgs) -> list[tuple[int, int]]:
    """(pp, tp) of this node: engine.py ``_calculate_rank_ranges``."""
    nodes_per_pp = max(args.nnodes // args.pp, 1)
    pp_per_node = max(args.pp // args.nnodes, 1)
    first_pp = pp_per_node * (args.node_rank // nodes_per_pp)
    tp_per_node = max(args.tp // nodes_per_pp, 1)
    first_tp = tp_per_node * (args.node_rank % nodes_per_pp)
    return [
        (pp, tp) for pp in range(first_pp, first_pp + pp_per_node) for tp in range(first_tp, first_tp + tp_per_node)
    ]


def _label(args: ServerArgs, version: str, dp: int | None, pp: int, tp: int) -> str:
    """The tokens in the order of this version; sizes of 1 are not printed (since 0.4.6)."""
    numbers = _numbers(version)
    tokens = [f"DP{dp}"] if dp is not None else []
    shown_tp = [f"TP{tp}"] if args.tp > 1 or (numbers and numbers < (0, 4, 6)) else []
    shown_pp = [f"PP{pp}"] if args.pp > 1 else []
    shown_ep = [f"EP{tp // max(1, args.tp // args.ep)}"] if args.ep > 1 else []
    if numbers and numbers < (0, 5, 5):
        return " ".join(tokens + shown_tp + shown_ep + shown_pp)
    return " ".join(tokens + shown_pp + shown_tp + shown_ep)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
