"""What an SGLang launcher spawns, in order, and which GPU a rank uses: from the arguments and the version.

Birth order and rank ranges: sglang 0.5.23 entrypoints/engine.py (``_launch_weight_cache_daemons``,
``_launch_scheduler_processes``, ``_calculate_rank_ranges``) and managers/data_parallel_controller.py; the prefix:
managers/scheduler.py of 0.4.1.post7 ... 0.5.23.
"""

from __future__ import annotations

import re

from sgmon.model import Role, ServerArgs
from sgmon.servers.family import Slot
from sgmon.versions import release


def expected_children(parent: Role, args: ServerArgs, version: str = "") -> tuple[Slot, ...]:
    """What a launcher or a DP controller spawns; () for other roles."""
    if parent is Role.LAUNCHER:
        return of_launcher(args, version)
    return of_controller(args, version) if parent is Role.CONTROLLER else ()


def by_ray(args: ServerArgs) -> bool:
    """Whether the schedulers are Ray's actors (``--use-ray``, from 0.5.10 on)."""
    return dict(args.raw).get("use_ray") == "True"


def of_launcher(args: ServerArgs, version: str = "") -> tuple[Slot, ...]:
    """What the launcher spawns, in order: weight-cache daemons, schedulers or DP controller, detokenizer."""
    ranks = [Slot(Role.WORKER, rank) for rank in rank_labels(args, version)]
    slots = []
    if dict(args.raw).get("weight_cache_mode") == "daemon":
        slots += [Slot(Role.WEIGHT_CACHE, slot.rank) for slot in ranks]
    if by_ray(args):
        pass  # Ray's own processes spawn them
    elif args.dp > 1:
        slots += [*ranks, Slot(Role.CONTROLLER)] if _prelaunched(args, version) else [Slot(Role.CONTROLLER)]
    else:
        slots += ranks
    if args.node_rank == 0:
        slots.append(Slot(Role.DETOKENIZER))
    return tuple(slots)


def of_controller(args: ServerArgs, version: str = "") -> tuple[Slot, ...]:
    """What the DP controller spawns: the schedulers, unless the launcher has spawned them."""
    if _prelaunched(args, version):
        return ()
    return tuple(Slot(Role.WORKER, rank) for rank in rank_labels(args, version))


def rank_labels(args: ServerArgs, version: str = "") -> tuple[str, ...]:
    """The ranks of this node in the order in which they are spawned: pp outer, tp inner, DP replicas outermost."""
    if args.dp > 1 and not args.dp_attention:
        return tuple(_label(args, version, dp, pp, tp) for dp in range(args.dp) for pp, tp in _local(args))
    group = max(1, args.tp // args.dp) if args.dp_attention and args.dp > 1 else 0
    return tuple(_label(args, version, tp // group if group else None, pp, tp) for pp, tp in _local(args))


def gpu_of(args: ServerArgs, rank: str) -> int | None:
    """The CUDA number of a rank's GPU, before CUDA_VISIBLE_DEVICES; None: it uses none, or another device.

    base + (pp % pp_per_node) * tp_per_node + (tp % tp_per_node) * step; plain DP adds its index times the GPUs of one
    replica. The pp term is not multiplied by the step, in no version. launch_server of 0.4.6.post5 ... 0.5.23.
    """
    if args.device not in ("", "cuda"):
        return None
    at = _numbers_of_rank(rank)
    pp_per_node = max(args.pp // max(args.nnodes, 1), 1)
    nodes_per_tp_group = max(args.nnodes // max(args.pp, 1), 1)
    tp_per_node = max(args.tp // nodes_per_tp_group, 1)
    number = args.base_gpu_id
    number += (at.get("PP", 0) % pp_per_node) * tp_per_node + (at.get("TP", 0) % tp_per_node) * args.gpu_id_step
    if args.dp > 1 and not args.dp_attention:
        number += at.get("DP", 0) * args.tp * args.pp * args.gpu_id_step
    return number


def _numbers_of_rank(rank: str) -> dict[str, int]:
    """ "DP0 TP1" -> {"DP": 0, "TP": 1}."""
    return {name: int(number) for name, number in re.findall(r"(?:^| )([A-Z_]+)(\d+)\b", rank)}


def _prelaunched(args: ServerArgs, version: str) -> bool:
    """Since 0.5.22 the launcher spawns the schedulers of DP attention itself, before the controller."""
    return args.dp_attention and args.dp > 1 and _is_at_least(version, (0, 5, 22))


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
    numbers = release(version)
    tokens = [f"DP{dp}"] if dp is not None else []
    shown_tp = [f"TP{tp}"] if args.tp > 1 or (numbers is not None and numbers < (0, 4, 6)) else []
    shown_pp = [f"PP{pp}"] if args.pp > 1 else []
    shown_ep = [f"EP{tp // max(1, args.tp // args.ep)}"] if args.ep > 1 else []
    if numbers is not None and numbers < (0, 5, 5):
        return " ".join(tokens + shown_tp + shown_ep + shown_pp)
    return " ".join(tokens + shown_pp + shown_tp + shown_ep)


def _is_at_least(version: str, first: tuple[int, ...]) -> bool:
    """An unknown version counts as the newest."""
    numbers = release(version)
    return numbers is None or numbers >= first
