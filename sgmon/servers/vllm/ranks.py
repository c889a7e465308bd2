"""What vLLM's processes spawn, in order, and which GPU a rank uses: from the arguments and the version.

V1: vllm 0.8 ... 0.33.0 v1/engine/utils.py (``launch_core_engines``), v1/executor/multiproc_executor.py, entrypoints/
cli/serve.py. V0 (default up to 0.7): engine/multiprocessing/engine.py, executor/multiproc_worker_utils.py; there the
engine's process is rank 0 itself.
"""

from __future__ import annotations

import re

from sgmon.model import Role, ServerArgs
from sgmon.servers.family import Slot

#: titles come with setproctitle, a dependency from here on
TITLES_SINCE = (0, 10, 1)
V1_SINCE = (0, 8, 0)
#: data parallelism starts as many API servers as replicas from here on
API_SERVERS_SINCE = (0, 15, 0)


def titled(version: str) -> bool:
    """Whether processes of this version get titles; true of an unknown version."""
    numbers = _numbers(version)
    return not numbers or numbers >= TITLES_SINCE


def expected_children(parent: Role, args: ServerArgs, version: str = "") -> tuple[Slot, ...]:
    """What a launcher, an API server of a supervisor, an engine core or V0's rank 0 spawns; () for other roles."""
    if parent is Role.LAUNCHER:
        return _of_launcher(args, version)
    if parent is Role.API_SERVER:
        return (Slot(Role.ENGINE),) if _supervised(args) else ()
    if parent is Role.ENGINE:
        return _worker_slots(args)
    return _worker_slots(args)[1:] if parent is Role.WORKER and is_v0(version) else ()


def expected_ranks(args: ServerArgs) -> tuple[str, ...]:
    """The ranks of this node."""
    if args.dp < 2:
        return _local_ranks(args)
    first = first_replica(args)
    replicas = [f"DP{first + at}" for at in range(local_replicas(args))]
    return tuple(rank_below(replica, rank) for replica in replicas for rank in _local_ranks(args))


def rank_below(parent: str, own: str) -> str:
    """The rank of a worker whose engine has the rank ``parent``: dense replicas have no DP token of their own."""
    return " ".join((parent, own)).strip() if parent.startswith("DP") and "DP" not in own else own


def api_servers(args: ServerArgs, version: str = "") -> int:
    """How many processes share the port, each with a ready line of its own; 0 on a node without one."""
    if args.headless:
        return 0
    if args.api_servers is not None:
        return args.api_servers
    numbers, raw = _numbers(version), dict(args.raw)
    if args.dp < 2 or (numbers and numbers < API_SERVERS_SINCE) or _supervised(args) or _external(args):
        return 1
    if "data_parallel_start_rank" in raw or raw.get("data_parallel_hybrid_lb") == "True":
        return local_replicas(args)
    return args.dp


def local_replicas(args: ServerArgs) -> int:
    """How many engine cores run on this node."""
    raw = dict(args.raw)
    if "data_parallel_rank" in raw:
        return 1
    local = raw.get("data_parallel_size_local", "")
    if local.isdigit():
        return int(local)
    return max(1, args.dp // args.nnodes) if args.dp > 1 else 1


def first_replica(args: ServerArgs) -> int:
    """The DP rank of this node's first engine core."""
    raw = dict(args.raw)
    given = raw.get("data_parallel_rank", "") or raw.get("data_parallel_start_rank", "")
    return int(given) if given.isdigit() else local_replicas(args) * args.node_rank if args.dp > 1 else 0


def is_v0(version: str) -> bool:
    """Whether the engine of this version is V0, where nothing chose another."""
    numbers = _numbers(version)
    return bool(numbers) and numbers < V1_SINCE


def gpu_of(args: ServerArgs, rank: str) -> int | None:
    """The CUDA number of a rank's GPU, before CUDA_VISIBLE_DEVICES; None: it uses none, or another device.

    Replicas outermost, then pp, then tp; each engine core counts from its place on this node.
    """
    if args.device not in ("", "auto", "cuda"):
        return None
    at = {name: int(number) for name, number in re.findall(r"([A-Z]+)(\d+)", rank)}
    stages = max(1, args.pp // args.nnodes) if args.dp == 1 else args.pp
    shards = max(1, args.tp * args.pp // args.nnodes // stages) if args.dp == 1 else args.tp
    replica = at.get("DP", first_replica(args)) - first_replica(args)
    if replica < 0:
        return None
    return replica * args.tp * args.pp + (at.get("PP", 0) % stages) * shards + at.get("TP", 0) % shards


def _of_launcher(args: ServerArgs, version: str) -> tuple[Slot, ...]:
    if is_v0(version):
        return _worker_slots(args)[:1]
    first, count = first_replica(args), local_replicas(args)
    if _supervised(args):
        return tuple(Slot(Role.API_SERVER, f"DP{first + at}") for at in range(count))
    if args.dp < 2:
        headless_workers = args.headless and args.nnodes > 1 and args.node_rank > 0
        engines = _worker_slots(args) if headless_workers else (Slot(Role.ENGINE),)
        return (*engines, *_api_slots(args, version))
    if dict(args.raw).get("data_parallel_backend") == "ray":
        return _api_slots(args, version)  # the engine cores are actors
    coordinator = () if args.headless or _external(args) else (Slot(Role.CONTROLLER),)
    engines = tuple(Slot(Role.ENGINE, f"DP{first + at}") for at in range(count))
    return (*coordinator, *engines, *_api_slots(args, version))


def _api_slots(args: ServerArgs, version: str) -> tuple[Slot, ...]:
    """The root serves itself where there is one."""
    count = api_servers(args, version)
    return (Slot(Role.API_SERVER),) * count if count > 1 else ()


def _supervised(args: ServerArgs) -> bool:
    """A supervisor starts one API server a replica, each with a port of its own (0.22 on)."""
    return dict(args.raw).get("data_parallel_multi_port_external_lb") == "True"


def _external(args: ServerArgs) -> bool:
    """Another program balances the replicas: this server is one of them."""
    raw = dict(args.raw)
    return "data_parallel_rank" in raw or raw.get("data_parallel_external_lb") == "True"


def by_ray(args: ServerArgs) -> bool:
    """Whether Ray starts the workers."""
    return dict(args.raw).get("distributed_executor_backend", "") == "ray"


def _worker_slots(args: ServerArgs) -> tuple[Slot, ...]:
    if by_ray(args):
        return ()  # actors, which Ray's own processes spawn
    return tuple(Slot(Role.WORKER, rank) for rank in _local_ranks(args))


def _local_ranks(args: ServerArgs) -> tuple[str, ...]:
    """The ranks of one engine core on this node, in birth order: pp outer, tp inner; sizes of 1 are not printed."""
    labels = []
    for pp in range(args.pp):
        for tp in range(args.tp):
            tokens = ([f"PP{pp}"] if args.pp > 1 else []) + ([f"TP{tp}"] if args.tp > 1 else [])
            labels.append(" ".join(tokens))
    if args.dp > 1 or args.nnodes < 2:
        return tuple(labels)
    each = max(1, len(labels) // args.nnodes)
    return tuple(labels[each * args.node_rank : each * (args.node_rank + 1)])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
