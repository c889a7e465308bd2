"""Which rank works on which GPU. Pure.

What NVML says comes first: pid -> process -> rank. Where it hides pids (containers, MIG, WSL) the one
/dev/nvidiaN that a scheduler has open decides, and before that SGLang's own formula; both are marked as inferred.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sgmon.model import Gpu, GpuProcess, Process, ServerArgs


def assign(
    gpus: tuple[Gpu, ...],
    processes: tuple[Process, ...],
    args: ServerArgs,
    visible_devices: str | None = None,
) -> tuple[Gpu, ...]:
    """``gpus`` with ranks. visible_devices: CUDA_VISIBLE_DEVICES of the launcher (its children's environment is
    blanked by setproctitle); None when it is not set or cannot be read."""
    live = [process for process in processes if not process.gone]
    by_pid = {process.pid: process for process in live}
    by_inner = {process.ns_pid: process for process in live if process.ns_pid is not None}
    named = tuple(_with_processes(gpu, by_pid, by_inner) for gpu in gpus)
    placed = {holder.pid for gpu in named for holder in gpu.processes}
    placed |= {by_inner[pid].pid for pid in placed if pid in by_inner and pid not in by_pid}
    inferred: dict[int, list[str]] = {}
    for process in live:
        if process.role in ("scheduler", "importing") and process.pid not in placed:
            index = _by_descriptor(named, process)
            if index is None:
                index = _by_formula(named, process, args, visible_devices)
            if index is not None:
                inferred.setdefault(index, []).append(process.rank)
    return tuple(_with_inferred(gpu, inferred.get(gpu.index, [])) for gpu in named)


def gpu_of(process: Process, gpus: Iterable[Gpu]) -> Gpu | None:
    """The GPU that a process holds: by the driver's process list, else by its rank."""
    by_rank = None
    for gpu in gpus:
        if any(holder.pid == process.pid for holder in gpu.processes):
            return gpu
        if by_rank is None and process.rank and process.rank in gpu.ranks:
            by_rank = gpu
    return by_rank


def _with_processes(gpu: Gpu, by_pid: dict[int, Process], by_inner: dict[int, Process]) -> Gpu:
    """Holders that belong to the watched tree get their rank; ``gpu.ranks`` are the schedulers among them."""
    holders: list[GpuProcess] = []
    ranks: list[str] = []
    for holder in gpu.processes:
        process = by_pid.get(holder.pid) or by_inner.get(holder.pid)
        if process is None:
            holders.append(holder)
            continue
        holders.append(replace(holder, rank=process.rank, name=process.title or holder.name or process.comm))
        if process.role == "scheduler" and process.rank not in ranks:
            ranks.append(process.rank)
    return replace(gpu, processes=tuple(holders), ranks=tuple(ranks), ranks_inferred=False)


def _with_inferred(gpu: Gpu, ranks: Sequence[str]) -> Gpu:
    new = [rank for rank in ranks if rank not in gpu.ranks]
    return replace(gpu, ranks=(*gpu.ranks, *new), ranks_inferred=True) if new else gpu


def _by_descriptor(gpus: tuple[Gpu, ...], process: Process) -> int | None:
    """The GPU behind the only /dev/nvidiaN of a scheduler. CUDA opens all visible ones: several tell nothing."""
    if process.role != "scheduler" or len(process.nvidia_fds) != 1:
        return None
    minor = process.nvidia_fds[0]
    for gpu in gpus:
        if (gpu.index if gpu.minor is None else gpu.minor) == minor:
            return gpu.index
    return None


def _by_formula(gpus: tuple[Gpu, ...], process: Process, args: ServerArgs, visible: str | None) -> int | None:
    """As in launch_server of SGLang 0.4.6.post5 ... 0.5.23; the result is a CUDA number, so visible devices apply."""
    if args.device not in ("", "cuda") or (process.role == "importing" and not process.rank_inferred):
        return None
    numbers = rank_numbers(process.rank)
    logical = gpu_id(numbers.get("TP", 0), numbers.get("PP", 0), numbers.get("DP", 0), args)
    index = _physical(gpus, logical, visible)
    return index if index in {gpu.index for gpu in gpus} else None


def gpu_id(tp_rank: int, pp_rank: int, dp_rank: int, args: ServerArgs) -> int:
    """base + (pp % pp_per_node) * tp_per_node + (tp % tp_per_node) * step; plain DP adds its index times the GPUs
    of one replica. The pp term is not multiplied by the step, in no version."""
    pp_per_node = max(args.pp // max(args.nnodes, 1), 1)
    nodes_per_tp_group = max(args.nnodes // max(args.pp, 1), 1)
    tp_per_node = max(args.tp // nodes_per_tp_group, 1)
    number = args.base_gpu_id
    number += (pp_rank % pp_per_node) * tp_per_node + (tp_rank % tp_per_node) * args.gpu_id_step
    if args.dp > 1 and not args.dp_attention:
        number += dp_rank * args.tp * args.pp * args.gpu_id_step
    return number


def rank_numbers(rank: str) -> dict[str, int]:
    """ "DP0 TP1" -> {"DP": 0, "TP": 1}."""
    numbers = {}
    for token in rank.split():
        head = token.rstrip("0123456789")
        if head and head != token:
            numbers[head] = int(token[len(head) :])
    return numbers


def _physical(gpus: tuple[Gpu, ...], logical: int, visible: str | None) -> int | None:
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
