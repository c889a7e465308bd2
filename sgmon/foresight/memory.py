"""GPU memory and host memory: what the weights need at least, against what this start can have.

The weights of a rank are at least all bytes divided by the ranks that share them: nothing is divided further, while
norms, small layers and, with few KV heads, whole projections are on every rank. More is needed (CUDA context 0.3-0.6
GiB, NCCL buffers, graphs, workspaces, KV cache), so that a start whose least need is above what is free cannot go
well. Between the least need and that plus ``MARGIN`` of it nothing is certain: that is a doubt.
"""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.foresight.start import RankGpu, Start, doomed, doubt, fine, unknown
from sgmon.model.preflight import Forecast, ModelFolder
from sgmon.model.verdict import NextStep
from sgmon.units import size

#: what a rank needs beyond the least: measured 3-8 % on real starts of dense models, and the CUDA context
MARGIN, CONTEXT_BYTES = 0.08, 600 * 1024**2
HELD_SHARE = 0.02
OPEN_FILES = 4096
#: bytes of one element of a floating dtype of safetensors that a load may convert
_FLOATS = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2}
_HALF = 2


def weights_bytes(model: ModelFolder) -> int | None:
    """Least bytes of the whole model's weights in memory, by its shards' headers; None: not all can be read.

    Floats wider than 16 bits may be loaded as 16 bits; every other dtype stays as it is.
    """
    used = [shard for shard in model.shards if model.indexed is None or shard.name in model.indexed]
    if not used or any(shard.wanted_bytes is None for shard in used):
        return None
    return sum(
        count * _HALF // _FLOATS[dtype] if _FLOATS.get(dtype, 0) > _HALF else count
        for shard in used
        for dtype, count in shard.weights
    )


def least_bytes(start: Start) -> int | None:
    """Least bytes of weights on a rank; None: not known, or the arguments change what is loaded."""
    model, options = start.facts.model, start.options
    if model is None or not start.loads_files or options.partly_elsewhere:
        return None
    if options.quantization and not model.get("quant_method"):
        return None  # made smaller while it is loaded
    whole = weights_bytes(model)
    return None if whole is None else whole // (start.args.tp * start.args.pp)


def gpu_memory(start: Start) -> Iterator[Forecast]:
    """The weights fit beside what others hold; and the family's share of the memory holds them."""
    if start.on_cpu or not start.gpus:
        return
    least = least_bytes(start)
    for gpu in start.gpus:
        check = f"memory of GPU {gpu.index}"
        if gpu.free_bytes is None or gpu.total_bytes is None:
            yield unknown("gpu-memory", check, "not readable", "gpu")
            continue
        held = f"; held: {gpu.holders}" if gpu.holders else ""
        share = _share_bytes(start, gpu)
        if share is not None and start.family.start.share_of == "total" and share > gpu.free_bytes:
            yield _less_than_share(start, gpu, check, share, held)
        elif least is None:
            yield _held(gpu, check)
        else:
            yield _fit(start, gpu, check, least, share, held)


def _held(gpu: RankGpu, check: str) -> Forecast:
    """What is said of a GPU while it is not known what the start needs."""
    free, others = f"{size(gpu.free_bytes)} of {size(gpu.total_bytes)} free", gpu.others_bytes or 0
    if others < HELD_SHARE * (gpu.total_bytes or 0):
        return fine("gpu-memory", check, free, "gpu")
    return doubt("gpu-held", check, f"{free}; held: {gpu.holders}", _free_it(gpu), signal="gpu", pid=gpu.pid)


def _free_it(gpu: RankGpu) -> NextStep:
    if gpu.orphans:
        pids = " ".join(map(str, gpu.orphans))
        return NextStep("End the workers that a server has left behind", f"kill {pids}")
    if gpu.pid:
        return NextStep("See who holds the memory", f"ps -o pid,ppid,user,etime,args -p {gpu.pid}")
    return NextStep("See who holds the memory", "nvidia-smi")


def _share_bytes(start: Start, gpu: RankGpu) -> float | None:
    """What the weights and the KV cache may take of this GPU, as far as the arguments say."""
    share = start.options.memory_share
    if share is None or gpu.total_bytes is None or gpu.free_bytes is None:
        return None
    return share * (gpu.total_bytes if start.family.start.share_of == "total" else gpu.free_bytes)


def _less_than_share(start: Start, gpu: RankGpu, check: str, share: float, held: str) -> Forecast:
    free = f"{size(gpu.free_bytes)} are free{held}"
    text = f"{gpu.rank or 'the rank'} asks for {size(share)} of GPU {gpu.index}, of which {free}"
    why = "the server refuses to start while less is free than its share of the whole memory"
    step = _free_it(gpu)
    return doomed("gpu-share", check, text, why, start.phase("weights"), step, signal="gpu", pid=gpu.pid)


def _fit(start: Start, gpu: RankGpu, check: str, least: int, share: float | None, held: str) -> Forecast:
    free = gpu.free_bytes or 0
    room = free if share is None else min(free, share)
    part = "" if share is None else f" ({size(share)} by the memory share)"
    need = f"weights of at least {size(least)} a rank"
    text = f"{need}, {size(free)} free on GPU {gpu.index}{part}{held}"
    step = _free_it(gpu) if gpu.holders else NextStep("Divide the model among more GPUs")
    if least > room:
        why = "less memory can be had than the weights take by their own headers, before any KV cache"
        phase = start.phase("weights" if least > free else "kv_cache")
        return doomed("gpu-memory", check, text, why, phase, step, signal="gpu", pid=gpu.pid)
    if least * (1 + MARGIN) + CONTEXT_BYTES > room:
        words = f"{text}: too close to say (the estimate's error is {MARGIN:.0%})"
        return doubt("gpu-memory", check, words, step, signal="gpu", pid=gpu.pid)
    return fine("gpu-memory", check, text, "gpu")


def host_memory(start: Start) -> Iterator[Forecast]:
    """On a CPU the weights lie in the group's memory; files that are mapped can be dropped again, so that only a
    group without swap whose limit is below the weights themselves cannot hold them."""
    limits = start.facts.limits
    least = least_bytes(start)
    check = "host memory"
    limit = min((n for n in (limits.group_memory_bytes, limits.memory_total_bytes) if n), default=None)
    if limit is None:
        return
    whole = None if least is None else least * _local_ranks(start)
    step = NextStep("Give the group more memory", "cat /sys/fs/cgroup/memory.max")
    if start.on_cpu and whole is not None and whole > limit and not limits.swap_bytes:
        text = f"weights of at least {size(whole)} on this node; its memory limit is {size(limit)}, without swap"
        why = "the weights are anonymous memory of the ranks, and more than the whole limit"
        yield doomed("host-memory", check, text, why, start.phase("weights"), step, signal="memory")
    elif limits.group_memory_bytes and whole is not None and whole > limits.group_memory_bytes and not start.on_cpu:
        text = f"the memory limit is {size(limit)}, the weights are {size(whole)}: the page cache cannot hold them"
        yield doubt("host-memory", check, text, step, signal="memory")
    elif limits.group_memory_bytes:
        yield fine("host-memory", check, f"limit {size(limits.group_memory_bytes)}", "memory")
    elif limits.memory_available_bytes is not None:
        yield fine("host-memory", check, f"{size(limits.memory_available_bytes)} available", "memory")


def _local_ranks(start: Start) -> int:
    replicas = 1 if start.args.dp_attention else start.args.dp
    return max(1, start.args.tp * start.args.pp * replicas // start.args.nnodes)


def group_limits(start: Start) -> Iterator[Forecast]:
    """What the machine and the group grant: CPUs, open files, locked memory."""
    limits = start.facts.limits
    if limits.group_cpus is not None and limits.group_cpus < _local_ranks(start):
        text = f"a CPU quota of {limits.group_cpus:g} for {_local_ranks(start)} ranks: the start is throttled"
        yield doubt("cpu-quota", "CPU quota", text, NextStep("Give the group a CPU for each rank"), signal="limits")
    if limits.open_files is not None and limits.open_files < OPEN_FILES:
        text = f"{limits.open_files} files may be open at once"
        yield doubt("open-files", "open files", text, NextStep("Raise it", "ulimit -n 65536"), signal="limits")
    if limits.locked_bytes is not None and start.args.nnodes > 1 and not start.on_cpu:
        text = f"{size(limits.locked_bytes)} of memory may be locked: RDMA between the nodes may fail"
        step = NextStep("Lift the limit", "docker run --ulimit memlock=-1; systemd: LimitMEMLOCK=infinity")
        yield doubt("locked-memory", "locked memory", text, step, signal="limits")
