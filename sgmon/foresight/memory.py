"""GPU memory and host memory: what the weights and the KV cache need, against what this start can have.

"Will fail" is said of the least that is needed (``MemoryPlan.least_bytes``) against the most that can be had
(``most_bytes``). Between that and what is expected nothing is certain: that is a doubt.
"""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.foresight.plan import LEAST_CONTEXT_BYTES, plans
from sgmon.foresight.start import RankGpu, Start, doomed, doubt, fine, unknown
from sgmon.foresight.weights import least_bytes
from sgmon.model.plan import MemoryPlan
from sgmon.model.preflight import Forecast
from sgmon.model.verdict import NextStep
from sgmon.units import size

#: what a rank may need beyond the expected weights: real starts of dense models stay below
MARGIN = 0.08
HELD_SHARE = 0.02
OPEN_FILES = 4096
#: SGLang's bound for the free memory of one GPU against another's, and what may lie between the two readings
BALANCE, BALANCE_ERROR_BYTES = 0.9, 2 * 1024**3


def gpu_memory(start: Start) -> Iterator[Forecast]:
    """Weights and KV cache fit beside what others hold, and into the share of the memory that the server takes."""
    if start.on_cpu or not start.gpus:
        return
    by_gpu = {plan.gpu: plan for plan in plans(start)}
    for gpu in start.gpus:
        check = f"memory of GPU {gpu.index}"
        plan = by_gpu.get(gpu.index)
        if plan is None or gpu.total_bytes is None or gpu.free_bytes is None:
            yield unknown("gpu-memory", check, "not readable", "gpu")
            continue
        held = f"; held: {gpu.holders}" if gpu.holders else ""
        asked = _asked_bytes(start, gpu, plan)
        if asked is not None and asked > gpu.free_bytes:
            yield _less_than_share(start, gpu, check, asked, held)
        elif plan.least_bytes is None:
            yield _held(gpu, check)
        else:
            yield _fit(start, gpu, check, plan, held)


def balance(start: Start) -> Iterator[Forecast]:
    """No GPU of the ranks has much less free memory than another, where the server refuses that."""
    rule = start.family.start.memory.balanced
    free = sorted(((gpu.free_bytes, gpu) for gpu in start.gpus if gpu.free_bytes is not None), key=lambda one: one[0])
    if rule is None or rule[0] not in start.facts.installed.proofs or start.args.tp < 2 or len(free) < 2:
        return
    if len(free) < len(start.gpus) or start.on_cpu or start.args.nnodes > 1 or start.args.dp > 1 or start.args.pp > 1:
        return
    (least, low), (most, high) = free[0], free[-1]
    text = f"{size(least)} free on GPU {low.index}, {size(most)} on GPU {high.index}"
    held = f"; held: {low.holders}" if low.holders else ""
    if least >= BALANCE * most:
        yield fine("gpu-balance", "balance of the GPUs", text, "gpu")
    elif any(start.facts.variable(name) for name in rule[1]) or least >= BALANCE * (most - BALANCE_ERROR_BYTES):
        yield doubt("gpu-balance", "balance of the GPUs", text + held, _free_it(low), signal="gpu", pid=low.pid)
    else:
        why = "the installed version refuses to start when one GPU has less than 0.9 of what another has free"
        phase, step = start.phase("rendezvous"), _free_it(low)
        yield doomed("gpu-balance", "balance of the GPUs", text + held, why, phase, step, signal="gpu", pid=low.pid)


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


def _asked_bytes(start: Start, gpu: RankGpu, plan: MemoryPlan) -> float | None:
    """What the server wants to be free of this GPU before it begins; None: it does not ask for that."""
    if start.family.start.share_of != "total" or plan.share is None or gpu.usable_bytes is None:
        return None
    return plan.share * gpu.usable_bytes


def _less_than_share(start: Start, gpu: RankGpu, check: str, share: float, held: str) -> Forecast:
    free = f"{size(gpu.free_bytes)} are free{held}"
    text = f"{gpu.rank or 'the rank'} asks for {size(share)} of GPU {gpu.index}, of which {free}"
    why = "the server refuses to start while less is free than its share of the whole memory"
    step = _free_it(gpu)
    return doomed("gpu-share", check, text, why, start.phase("weights"), step, signal="gpu", pid=gpu.pid)


def _fit(start: Start, gpu: RankGpu, check: str, plan: MemoryPlan, held: str) -> Forecast:
    least, most, free = plan.least_bytes or 0, plan.most_bytes or 0, plan.free_bytes or 0
    expected = plan.weights_bytes or least
    part = "" if plan.budget_bytes is None else f", {size(plan.budget_bytes)} for weights and KV cache"
    text = f"weights of {size(expected)} a rank, {size(free)} free on GPU {gpu.index}{part}{held}"
    step = _free_it(gpu) if gpu.holders else NextStep("Divide the model among more GPUs")
    one_request = _longest_bytes(start, plan)
    if least > most:
        why = "less memory can be had than the weights take by their own headers, before any KV cache"
        phase = start.phase("weights" if least > free - LEAST_CONTEXT_BYTES else "kv_cache")
        return doomed("gpu-memory", check, text, why, phase, step, signal="gpu", pid=gpu.pid)
    if one_request is not None and least + one_request > most:
        why = f"one request of the greatest length takes {size(one_request)} of KV cache, more than the weights leave"
        step = NextStep("Start with a smaller --max-model-len, or divide the model among more GPUs")
        return doomed("kv-cache", check, text, why, start.phase("kv_cache"), step, signal="gpu", pid=gpu.pid)
    room = most if plan.budget_bytes is None else plan.budget_bytes
    if max(least, expected) * (1 + MARGIN) + (one_request or 0) > room:
        words = f"{text}: less than {MARGIN:.0%} apart, too close to say"
        return doubt("gpu-memory", check, words, step, signal="gpu", pid=gpu.pid)
    cache = "" if plan.kv_bytes is None else f": KV cache of about {size(plan.kv_bytes)}"
    tokens = "" if plan.tokens is None else f" ({plan.tokens:,} tokens)"
    return fine("gpu-memory", check, text + cache + tokens, "gpu")


def _longest_bytes(start: Start, plan: MemoryPlan) -> int | None:
    """KV cache of one request of the greatest length; None: not known, or the server does not insist on it."""
    model = start.facts.model
    if not start.family.start.memory.fits_longest or plan.token_bytes is None or model is None:
        return None
    asked = dict(start.args.raw).get("max_model_len", "")
    if asked in ("", "None"):
        length = model.number("max_position_embeddings")
        return None if length is None else length * plan.token_bytes
    return int(asked) * plan.token_bytes if asked.isdigit() else None


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
