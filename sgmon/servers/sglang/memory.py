"""How SGLang divides the memory of a GPU: weights and KV cache get ``mem_fraction_static`` of what is free before the
load, the rest is left for activations and CUDA graphs.

Read in sglang 0.5.17 srt/server_args.py (``_handle_gpu_memory_settings``, ``reserve_for_graph_mb``) and 0.5.23
srt/arg_groups/memory_hook.py, srt/mem_cache/kv_cache_configurator.py (``_profile_available_bytes``),
srt/distributed/bootstrap.py (``_check_tp_memory_balance``). Measured on H200 with 0.5.17.
"""

from __future__ import annotations

from sgmon.model import ServerArgs
from sgmon.model.preflight import Installed
from sgmon.servers.memory_rules import GIB, MemoryRules, Share, given_share
from sgmon.versions import release

#: the versions whose formula was read
_READ = (0, 5, 17), (0, 5, 23)
#: MiB below which a GPU gets these defaults: (below, tokens of a prefill chunk, largest batch of graphs, with TP 4+)
_DEFAULTS = (
    (20 * 1024, 2048, 8, 8),
    (35 * 1024, 4096, 48, 160),
    (60 * 1024, 4096, 32, 160),
    (90 * 1024, 8192, 256, 512),
    (160 * 1024, 8192, 256, 512),
)
_LARGEST = (0, 16384, 512, 512)
_LARGE_MIB, _LEAST_RESERVE_MIB = 60 * 1024, 10 * 1024
#: sizes of prefill graphs for a chunk of 8192 tokens; each takes 8 MiB
_PREFILL_GRAPHS = 58
#: arguments and variables under which the formula is another one
_OTHER_FORMULA = ("enable_dp_attention", "moe_a2a_backend", "disaggregation_mode", "cuda_graph_config")
_UNSET = ("", "None", "null", "none", "False", "false")
_POST_CAPTURE = "SGLANG_ENABLE_POST_CAPTURE_KV_SIZING"


def share(
    args: ServerArgs, total_bytes: int, version: str, installed: Installed, env: dict[str, str]
) -> Share | None:
    """Given, or as the server computes it from the GPU's size, its chunk of prefill tokens and its graphs."""
    raw = dict(args.raw)
    asked = given_share(raw.get("mem_fraction_static", ""))
    if asked is not None:
        return asked
    number = release(version)
    other = any(raw.get(name, "") not in _UNSET for name in _OTHER_FORMULA) or args.device not in ("", "cuda")
    other = other or raw.get("chunked_prefill_size", "").startswith("-") or _POST_CAPTURE in env
    if number is None or total_bytes <= 0 or not _READ[0] <= number[:3] <= _READ[1] or other:
        return None
    total_mib = total_bytes / 1024**2
    row = next((one for one in _DEFAULTS if total_mib < one[0]), _LARGEST)
    chunk = _number(raw.get("chunked_prefill_size", "")) or row[1]
    graphs = row[3] if args.tp >= 4 else row[2]
    reserved = 512 + max(chunk, 2048) * 1.5 + args.tp * args.pp / 8 * 1024
    if not args.disable_cuda_graph:
        asked_for = (_number(raw.get(name, "")) for name in ("cuda_graph_max_bs", "cuda_graph_max_bs_decode"))
        reserved += next(filter(None, asked_for), graphs) * 2
        reserved += 0 if raw.get("cuda_graph_backend_prefill") == "disabled" else _PREFILL_GRAPHS * 8
    if total_mib > _LARGE_MIB:
        reserved = max(reserved, _LEAST_RESERVE_MIB)
    value = round((total_mib - reserved) / total_mib, 3)
    return Share(value, "formula", min(1.0, value + 0.02)) if 0 < value < 1 else None


def context_bytes(args: ServerArgs) -> int:
    """139.80 GiB less "avail mem" before the load: 0.67 GiB alone, 1.49 GiB with NCCL between two ranks."""
    return round((0.67 if args.tp * args.pp == 1 else 1.49) * GIB)


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() and int(text) > 0 else None


RULES = MemoryRules(
    share=share,
    context_bytes=context_bytes,
    balanced=(
        "balanced-memory",
        ("SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK", "SGL_DISABLE_TP_MEMORY_INBALANCE_CHECK"),
    ),
)
