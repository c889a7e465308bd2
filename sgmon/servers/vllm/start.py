"""What vLLM's arguments say of a start that has not happened yet.

Facts: vllm 0.32.0 entrypoints/launchers/launcher.py (``setup_server``), engine/arg_utils.py, config/model.py
(``verify_with_parallel_config``), model_executor/model_loader/weight_utils.py, model_executor/models/registry.py.
"""

from __future__ import annotations

from sgmon.model import ServerArgs
from sgmon.servers.start_rules import StartOptions, StartRules
from sgmon.servers.vllm import memory
from sgmon.servers.vllm.ranks import api_servers, expected_ranks, gpu_of


def options(args: ServerArgs) -> StartOptions:
    """From the arguments as found."""
    raw = dict(args.raw)
    share = raw.get("gpu_memory_utilization", "")
    return StartOptions(
        tokenizer_path=raw.get("tokenizer", ""),
        no_tokenizer=raw.get("skip_tokenizer_init") == "True",
        trust_remote_code=raw.get("trust_remote_code") == "True",
        quantization=raw.get("quantization", ""),
        memory_share=float(share) if share.replace(".", "", 1).isdigit() and 0 < float(share) <= 1 else None,
        partly_elsewhere=raw.get("cpu_offload_gb", "0") not in ("", "0"),
    )


def shares_port(args: ServerArgs) -> bool:
    """Several API servers bind with SO_REUSEPORT, a single one does not."""
    return api_servers(args) > 1


def gpus(args: ServerArgs, version: str) -> tuple[int | None, ...]:
    """The GPUs of this node's ranks."""
    return tuple(gpu_of(args, rank) for rank in expected_ranks(args))


RULES = StartRules(
    options=options,
    # the port is bound when the launcher has imported, before any child: what holds it ends the start there
    stages=(
        ("arguments", "launch"),
        ("tokenizer", "launch"),
        ("port", "spawn"),
        ("rendezvous", "dist_init"),
        ("weights", "weights"),
        ("kv_cache", "kv_cache"),
    ),
    file_formats=frozenset({"auto", "safetensors"}),
    share_of="total",
    shares_port=shares_port,
    gpus=gpus,
    models="model_executor/models",
    model_class=r'^    "(?P<one>\w+)": \((?P<list>)',  # of the tables in registry.py
    proofs=(
        (
            "missing-shard",
            "model_executor/model_loader/weight_utils.py",
            "Weight files referenced in index but missing",
        ),
        ("index-read", "model_executor/model_loader/weight_utils.py", 'weight_map = json.load(f)["weight_map"]'),
        ("heads-divisible", "config/model.py", "must be divisible by tensor parallel size"),
        *memory.PROOFS,
    ),
    memory=memory.RULES,
)
