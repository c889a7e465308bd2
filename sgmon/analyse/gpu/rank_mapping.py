"""Which rank works on which GPU. Pure.

What NVML says comes first: pid -> process -> rank. Where it hides pids (containers, MIG, WSL) the one
/dev/nvidiaN that a worker has open decides, and before that the family's formula; both are marked as inferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sgmon.analyse.memo import Memo
from sgmon.model import Gpu, GpuProcess, Process, Role, Server
from sgmon.servers.registry import get


def assign(
    gpus: tuple[Gpu, ...],
    processes: tuple[Process, ...],
    server: Server,
) -> tuple[Gpu, ...]:
    """``gpus`` with the ranks of ``server``, whose ``visible_devices`` are the launcher's: setproctitle blanks its
    children's environment."""
    live = [process for process in processes if process.alive]
    by_pid = {process.pid: process for process in live}
    by_inner = {process.ns_pid: process for process in live if process.ns_pid is not None}
    named = tuple(_with_processes(gpu, by_pid, by_inner) for gpu in gpus)
    placed = {holder.pid for gpu in named for holder in gpu.processes}
    placed |= {by_inner[pid].pid for pid in placed if pid in by_inner and pid not in by_pid}
    inferred: dict[int, list[str]] = {}
    for process in live:
        if process.role in (Role.WORKER, Role.IMPORTING) and process.pid not in placed:
            index = _by_descriptor(named, process)
            if index is None:
                index = _by_formula(named, process, server)
            if index is not None:
                inferred.setdefault(index, []).append(process.rank)
    return tuple(_with_inferred(gpu, inferred.get(gpu.index, [])) for gpu in named)


class _Table(NamedTuple):
    """The GPUs of one reading by the pid of a holder and by rank, and their numbers. Every rank asks: a search for
    each would be the square of their number."""

    by_pid: dict[int, Gpu]
    by_rank: dict[str, Gpu]
    indices: frozenset[int]


_TABLES: Memo[_Table] = Memo(8)


def _table(gpus: tuple[Gpu, ...]) -> _Table:
    return _TABLES.get((gpus,), "", lambda: _make_table(gpus))


def _make_table(gpus: tuple[Gpu, ...]) -> _Table:
    by_pid: dict[int, Gpu] = {}
    by_rank: dict[str, Gpu] = {}
    for gpu in gpus:
        for holder in gpu.processes:
            by_pid.setdefault(holder.pid, gpu)
        for rank in filter(None, gpu.ranks):
            by_rank.setdefault(rank, gpu)
    return _Table(by_pid, by_rank, frozenset(gpu.index for gpu in gpus))


def gpu_of(process: Process, gpus: tuple[Gpu, ...]) -> Gpu | None:
    """The GPU that a process holds: by the driver's process list, else by its rank."""
    table = _table(gpus)
    return table.by_pid.get(process.pid) or table.by_rank.get(process.rank)


def _with_processes(gpu: Gpu, by_pid: dict[int, Process], by_inner: dict[int, Process]) -> Gpu:
    """Holders that belong to the watched tree get their rank; ``gpu.ranks`` are the workers among them."""
    holders: list[GpuProcess] = []
    ranks: list[str] = []
    for holder in gpu.processes:
        process = by_pid.get(holder.pid) or by_inner.get(holder.pid)
        if process is None:
            holders.append(holder)
            continue
        holders.append(replace(holder, rank=process.rank, name=process.title or holder.name or process.comm))
        if process.role in (Role.WORKER, Role.ENGINE) and process.rank not in ranks:
            ranks.append(process.rank)
    return replace(gpu, processes=tuple(holders), ranks=tuple(ranks), ranks_inferred=False)


def _with_inferred(gpu: Gpu, ranks: Sequence[str]) -> Gpu:
    new = [rank for rank in ranks if rank not in gpu.ranks]
    return replace(gpu, ranks=(*gpu.ranks, *new), ranks_inferred=True) if new else gpu


def _by_descriptor(gpus: tuple[Gpu, ...], process: Process) -> int | None:
    """The GPU behind the only /dev/nvidiaN of a worker. CUDA opens all visible ones: several tell nothing."""
    if process.role != Role.WORKER or len(process.nvidia_fds) != 1:
        return None
    minor = process.nvidia_fds[0]
    for gpu in gpus:
        if (gpu.index if gpu.minor is None else gpu.minor) == minor:
            return gpu.index
    return None


def _by_formula(gpus: tuple[Gpu, ...], process: Process, server: Server) -> int | None:
    """The GPU that the family's formula gives, once the rank is known. It counts the visible devices only."""
    if process.role == Role.IMPORTING and not process.rank_inferred:
        return None
    logical = get(server.family).discovery.gpu_of(server.args, process.rank)
    index = None if logical is None else physical(gpus, logical, server.visible_devices)
    return index if index in _table(gpus).indices else None


def physical(gpus: tuple[Gpu, ...], logical: int, visible: str | None) -> int | None:
    """The NVML index of a CUDA number. CUDA_VISIBLE_DEVICES holds numbers or (starts of) UUIDs, up to the first
    that does not exist."""
    if visible is None or not visible.strip():
        return logical
    entries = [entry.strip() for entry in visible.split(",")]
    if logical >= len(entries):
        return None
    entry = entries[logical]
    if entry.isdigit():
        return int(entry)
    matches = [
        gpu.index
        for gpu in gpus
        if gpu.uuid.startswith(entry) or any(part.uuid.startswith(entry) for part in gpu.slices)
    ]
    return matches[0] if len(matches) == 1 else None
