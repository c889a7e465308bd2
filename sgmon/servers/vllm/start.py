"""What vLLM's arguments say of a start that has not happened yet.

Facts: vllm 0.32.0 entrypoints/launchers/launcher.py (``setup_server``), engine/arg_utils.py, config/model.py
(``verify_with_parallel_config``), model_executor/model_loader/weight_utils.py, model_executor/models/registry.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from sgmon.model import ServerArgs
from sgmon.servers.start_rules import Beside, Defect, SharedMemory, StartOptions, StartRules
from sgmon.servers.vllm import memory
from sgmon.servers.vllm.ranks import api_servers, expected_ranks, gpu_of

#: methods of speculation that have no model of their own
_NO_DRAFT = frozenset({"ngram", "ngram_gpu", "suffix", "custom_class"})


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
        draft_path=_draft(raw),
        chat_template=raw.get("chat_template", ""),
        experts_divided=raw.get("enable_expert_parallel") == "True",
        partly_elsewhere=raw.get("cpu_offload_gb", "0") not in ("", "0"),
    )


def _draft(raw: dict[str, str]) -> str:
    """The draft model's path: of --speculative-config, as JSON or as the log shows it (a cut one tells nothing); or
    of the older flag. "ngram" and the like are methods without a model."""
    import ast  # 2 ms, for this alone

    text = raw.get("speculative_config", "")
    try:
        given = ast.literal_eval(text) if "'" in text else json.loads(text or "{}")
    except (ValueError, SyntaxError):
        return ""
    given = given if isinstance(given, dict) else {}
    path = given.get("model") or raw.get("speculative_config.model", "") or raw.get("speculative_model", "")
    without = given.get("method") in _NO_DRAFT or not isinstance(path, str) or path.strip("[]") in _NO_DRAFT
    return "" if without or path == "None" else path


def meets(args: ServerArgs) -> bool:
    """On one node the ranks meet by a file or at a free port of 127.0.0.1: --master-addr is for several (0.32.0
    v1/executor/multiproc_executor.py, distributed/parallel_state.py)."""
    return args.nnodes > 1


def shared_memory(args: ServerArgs, get: Callable[[str], str]) -> SharedMemory | None:
    """The ring buffer of the message queue to the ranks of this node, made where there are several (0.32.0
    device_communicators/shm_broadcast.py: 10 chunks; multiproc_executor.py: VLLM_MQ_MAX_CHUNK_BYTES_MB, 16)."""
    backend = dict(args.raw).get("distributed_executor_backend", "")
    chunk = get("VLLM_MQ_MAX_CHUNK_BYTES_MB") or "16"
    if args.tp * args.pp < 2 or backend not in ("", "mp") or args.nnodes > 1 or not chunk.isdigit():
        return None
    why = "the installed version looks at the free space before it makes the queue, and refuses to go on"
    return SharedMemory(10 * int(chunk) * 1024**2, "shm-checked", "the queue to the ranks", why)


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
        ("ranks", "spawn"),
        ("rendezvous", "dist_init"),
        ("weights", "weights"),
        ("kv_cache", "kv_cache"),
        ("template", "http"),
    ),
    file_formats=frozenset({"auto", "safetensors"}),
    share_of="total",
    shares_port=shares_port,
    gpus=gpus,
    models="model_executor/models/registry.py",
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
        ("template-file", "renderers/chat_utils.py", "looks like a file path, but it failed to be opened"),
        ("template-file", "entrypoints/chat_utils.py", "looks like a file path, but it failed to be opened"),
        ("shm-checked", "distributed/device_communicators/shm_broadcast.py", "check_shm_free_space(self.total_bytes"),
        ("experts-wanted", "config/model.py", "when expert parallelism is enabled"),
    ),
    meets=meets,
    cpu_build=lambda version: version.endswith("+cpu"),  # platforms/__init__.py, ``cpu_platform_plugin``
    shared_memory=shared_memory,
    defects=(
        Defect(
            (0,),
            (0, 11, 2, 1 << 30),
            "transformers 5 with a version that expects 4: the tokenizer lacks all_special_tokens_extended",
            "https://github.com/QwenLM/Qwen3-VL/issues/2058",
            "Install a transformers below 5",
            beside=(Beside(("transformers",), (5,)),),
        ),
    ),
    memory=memory.RULES,
)
