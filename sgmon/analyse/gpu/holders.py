"""What holds a GPU's memory: ranks, the server's other processes, strangers, workers whose server is gone. Pure."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from sgmon.analyse.memo import Memo
from sgmon.model import Gpu, GpuProcess, Process, Role, Snapshot
from sgmon.servers import registry

#: below both of these a foreign holder takes nothing that a start would miss (a desktop, a small CUDA context)
FOREIGN_BYTES = 1024**3
FOREIGN_SHARE = 0.02
#: a GPU gives some MiB to no process: the driver's own
UNACCOUNTED_BYTES = 256 * 1024**2
_MPS = "nvidia-cuda-mps-server"


class Holding(Struct, frozen=True):
    """One holder.

    kind: rank (a worker of the watched server), server (another process of it), orphan (a server's worker
    while no server runs that it could belong to), other-server (a worker of one), stranger, mps, unseen (its pid is
    not in this /proc: another pid namespace, or gone while the driver still lists it), unaccounted (nobody).
    """

    kind: str
    pid: int
    name: str = ""
    rank: str = ""
    used_bytes: int | None = None

    @property
    def foreign(self) -> bool:
        return self.kind in ("orphan", "other-server", "stranger", "unseen")


def holdings(gpu: Gpu, tree: frozenset[int] = frozenset(), other_servers: bool = False) -> tuple[Holding, ...]:
    """All holders of one GPU, the largest first, and what no process accounts for as the last.

    tree: pids of the watched server (outer and inner). other_servers: whether another server runs here.
    """
    holders = [*gpu.processes, *(process for part in gpu.slices for process in part.processes)]
    found = [_holding(gpu, holder, tree, other_servers) for holder in holders]
    found.sort(key=lambda one: -(one.used_bytes or 0))
    left = unaccounted_bytes(gpu)
    if left is not None and left >= UNACCOUNTED_BYTES:
        found.append(Holding("unaccounted", 0, used_bytes=left))
    return tuple(found)


def _holding(gpu: Gpu, holder: GpuProcess, tree: frozenset[int], other_servers: bool) -> Holding:
    used = holder.used_bytes
    if used is None and len(gpu.processes) == 1 and not gpu.slices:
        used = gpu.used_bytes  # the only holder holds it all
    kind = "stranger"
    if holder.rank or (holder.pid in tree and _is_worker(holder.name)):
        kind = "rank"
    elif holder.pid in tree:
        kind = "server"
    elif not holder.name:
        kind = "unseen"
    elif _MPS in holder.name:
        kind = "mps"
    elif _of_a_family(holder.name):
        kind = "other-server" if other_servers else "orphan"
    return Holding(kind, holder.pid, holder.name, holder.rank, used)


@lru_cache(maxsize=256)
def _is_worker(name: str) -> bool:
    """Whether a title is that of a worker, or of an engine, which holds GPU memory where it has the only rank."""
    argv = tuple(name.split())
    family = registry.family_of_title(argv)
    return family is not None and family.discovery.role_of(argv) in (Role.WORKER, Role.ENGINE)


@lru_cache(maxsize=256)
def _of_a_family(name: str) -> bool:
    """Whether a title or command line is of a server that sgmon knows."""
    argv = tuple(name.split())
    return registry.family_of_title(argv) is not None or registry.recognise(argv) is not None


def unaccounted_bytes(gpu: Gpu) -> int | None:
    """In use and listed for no process; None where that cannot be told."""
    holders = [*gpu.processes, *(process for part in gpu.slices for process in part.processes)]
    listed = [holder.used_bytes for holder in holders]
    if gpu.used_bytes is None or (None in listed and len(listed) == 1) or any(used is None for used in listed):
        return None
    reserve_counted = any(item.signal == "reserved_bytes" for item in gpu.missing)
    if reserve_counted:
        return None
    return max(0, gpu.used_bytes - sum(used for used in listed if used is not None))


_TREES: Memo[frozenset[int]] = Memo(8)


def _tree(processes: tuple[Process, ...]) -> frozenset[int]:
    return frozenset(pid for process in processes for pid in (process.pid, process.ns_pid) if pid is not None)


def holdings_in(snapshot: Snapshot, gpu: Gpu) -> tuple[Holding, ...]:
    """The same, seen from a snapshot."""
    processes = snapshot.procs.processes
    tree = _TREES.get((processes,), "", lambda: _tree(processes))
    own = snapshot.server.pid if snapshot.server is not None else None
    if own is not None and snapshot.orphans:
        tree |= {orphan.pid for orphan in snapshot.orphans if orphan.launcher == own}
    return holdings(gpu, tree, any(candidate.pid != own for candidate in snapshot.candidates))


def in_the_way(gpu: Gpu, found: tuple[Holding, ...]) -> tuple[Holding, ...]:
    """Foreign holders that take what a start of the server would miss."""
    least = min(FOREIGN_BYTES, FOREIGN_SHARE * gpu.total_bytes) if gpu.total_bytes else FOREIGN_BYTES
    return tuple(one for one in found if one.foreign and (one.used_bytes is None or one.used_bytes >= least))
