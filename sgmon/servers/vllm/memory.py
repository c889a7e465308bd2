"""How vLLM divides the memory of a GPU: weights, activations and KV cache get ``gpu_memory_utilization`` of it.

Read in vllm 0.22 and 0.32 v1/worker/gpu_worker.py (``determine_available_memory``), v1/worker/utils.py
(``request_memory``), v1/core/kv_cache_utils.py (``_check_enough_kv_cache_memory``), config/cache.py. Measured on H200
with 0.22.
"""

from __future__ import annotations

from sgmon.model import ServerArgs
from sgmon.model.preflight import Installed
from sgmon.servers.memory_rules import GIB, MemoryRules, Share, given_share

#: proof -> the default that this version's file states
DEFAULTS = {"share-0.92": 0.92, "share-0.9": 0.9}
PROOFS = tuple(
    (name, "config/cache.py", f"gpu_memory_utilization: float = Field(default={value:g},")
    for name, value in DEFAULTS.items()
)


def share(
    args: ServerArgs, total_bytes: int, version: str, installed: Installed, env: dict[str, str]
) -> Share | None:
    """Given, or the default that the installed version states. A fixed KV cache ignores it."""
    raw = dict(args.raw)
    if raw.get("kv_cache_memory_bytes", "None") not in ("", "None"):
        return None
    asked = given_share(raw.get("gpu_memory_utilization", ""))
    if asked is not None:
        return asked
    stated = next((value for name, value in DEFAULTS.items() if name in installed.proofs), None)
    return None if stated is None else Share(stated, "default", stated)


def besides_bytes(args: ServerArgs) -> int:
    """CUDA context, NCCL and the activations of the profile run, of a 4 B model with 8192 tokens a batch: 1.17 GiB
    alone, 1.48 GiB with two ranks."""
    return round((1.17 if args.tp * args.pp == 1 else 1.48) * GIB)


RULES = MemoryRules(share=share, context_bytes=lambda args: GIB // 2, besides_bytes=besides_bytes, fits_longest=True)
