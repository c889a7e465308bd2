"""What each rank will take of its GPU: CUDA context, weights, KV cache, and what stays for activations and graphs.

The families say how they divide the memory (``sgmon.servers.memory_rules``). What finished starts of the same kind
took goes before what the files tell. Errors: docs/foresight.md, measured on H200s.
"""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.foresight.start import RankGpu, Start
from sgmon.foresight.weights import expected_bytes, least_bytes
from sgmon.model.plan import MemoryPlan
from sgmon.servers.memory_rules import Share

#: no CUDA context with torch's kernels is smaller
LEAST_CONTEXT_BYTES = 256 * 1024**2
#: of weights and KV cache, as shares of what is expected of them together; see the table in docs/foresight.md
FILES_ERROR, LEARNED_ERROR = 0.03, 0.01
#: models whose every layer keeps K and V of each token, and nothing else
_PLAIN = frozenset({"llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "phi3", "starcoder2"})
_FP8 = ("fp8", "float8")
_UNSET = ("", "None", "null", "auto")


def plans(start: Start) -> tuple[MemoryPlan, ...]:
    """One for each GPU of this start's ranks whose memory can be read."""
    return tuple(_plans(start))


def _plans(start: Start) -> Iterator[MemoryPlan]:
    if start.on_cpu:
        return
    least, expected, token = least_bytes(start), expected_bytes(start), token_bytes(start)
    if start.taken is not None and start.taken.weights_bytes:
        expected = start.taken.weights_bytes
    free = [gpu.free_bytes for gpu in start.gpus if gpu.free_bytes is not None]
    # the ranks agree on the least that any of them has
    common = min(free, default=None) if _shares_free(start) else None
    shares = _shares(start)
    for gpu in start.gpus:
        if gpu.free_bytes is None or gpu.usable_bytes is None:
            continue
        share = shares[gpu.total_bytes or 0]
        yield _plan(start, gpu, gpu.free_bytes if common is None else common, share, least, expected, token)


def _shares(start: Start) -> dict[int, Share | None]:
    """Total bytes of a GPU -> the share of it that the server takes."""
    share, env = start.family.start.memory.share, dict(start.facts.env)
    totals = {gpu.total_bytes or 0 for gpu in start.gpus}
    return {total: share(start.args, total, start.version, start.facts.installed, env) for total in totals}


def _plan(
    start: Start,
    gpu: RankGpu,
    free: int,
    share: Share | None,
    least: int | None,
    expected: int | None,
    token: int | None,
) -> MemoryPlan:
    usable = gpu.usable_bytes or 0
    context = _context(start)
    budget, most = _budget(start, share, usable, free, context)
    kv = None if budget is None or expected is None else max(0, budget - expected)
    tokens = None if kv is None or token is None else kv // token
    return MemoryPlan(
        gpu=gpu.index,
        ranks=gpu.rank,
        free_bytes=gpu.free_bytes,
        context_bytes=context,
        weights_bytes=expected,
        least_bytes=least,
        budget_bytes=budget,
        most_bytes=most,
        share=None if share is None else share.value,
        share_from="" if share is None else share.source,
        kv_bytes=kv,
        token_bytes=token,
        tokens=tokens,
        reserve_bytes=None if budget is None else max(0, free - context - budget),
        learned=start.taken_count if start.taken is not None else 0,
        error=LEARNED_ERROR if start.taken is not None else FILES_ERROR,
    )


def _budget(start: Start, share: Share | None, usable: int, free: int, context: int) -> tuple[int | None, int]:
    """(what weights and KV cache may take as expected, at the very most)."""
    room = free - LEAST_CONTEXT_BYTES
    if share is None:
        return None, max(0, room)
    rules = start.family.start
    if rules.share_of == "total":
        expected = round(usable * share.value) - rules.memory.besides_bytes(start.args)
        return max(0, expected), max(0, min(room, round(usable * share.most)))
    return max(0, round((free - context) * share.value)), max(0, round(room * share.most))


def _context(start: Start) -> int:
    if start.taken is not None and start.taken.context_bytes:
        return start.taken.context_bytes
    return start.family.start.memory.context_bytes(start.args)


def _shares_free(start: Start) -> bool:
    return start.family.start.share_of == "free" and start.args.tp * start.args.pp > 1 and start.args.nnodes == 1


def token_bytes(start: Start) -> int | None:
    """Bytes of the KV cache that one token takes on a rank; None: not known for this model.

    K and V of each layer, its heads divided among the ranks of the attention; a compressed one (MLA) is on each rank
    whole.
    """
    model, raw = start.facts.model, dict(start.args.raw)
    layers = None if model is None else model.number("num_hidden_layers")
    if model is None or layers is None:
        return None
    asked = raw.get("kv_cache_dtype", "")
    wide = 1 if asked.startswith(_FP8) else 2 if asked in (*_UNSET, "bfloat16", "float16") else None
    if wide is None or raw.get("dtype", "") in ("float", "float32"):
        return None
    layers = -(-layers // start.args.pp)
    latent, rope = model.number("kv_lora_rank"), model.number("qk_rope_head_dim")
    if latent and rope and model.get("model_type") in ("deepseek_v2", "deepseek_v3"):
        return (latent + rope) * layers * wide
    heads, width = model.number("num_key_value_heads"), _head_width(start)
    sliding = model.get("sliding_window") and model.get("use_sliding_window") is not False
    if heads is None or width is None or sliding or model.get("model_type") not in _PLAIN:
        return None
    ranks = max(1, start.args.tp // start.args.dp) if start.args.dp_attention else start.args.tp
    return 2 * max(1, heads // ranks) * width * layers * wide


def _head_width(start: Start) -> int | None:
    model = start.facts.model
    if model is None:
        return None
    width, heads, hidden = (model.number(name) for name in ("head_dim", "num_attention_heads", "hidden_size"))
    return width or (hidden // heads if heads and hidden else None)
