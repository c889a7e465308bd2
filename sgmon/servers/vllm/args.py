"""The names of vLLM's arguments, their aliases and abbreviations.

Spellings: vllm 0.5.5 ... 0.33.0 (engine/arg_utils.py, entrypoints/openai/cli_args.py). Short flags have one dash and
several letters: ``-tp 2``, ``-dp 2``.
"""

from __future__ import annotations

from sgmon.patterns import regex
from sgmon.servers.family import ReadConfig
from sgmon.servers.flags import Flags

#: full name -> other spellings of the same argument
_ALIASES: dict[str, tuple[str, ...]] = {
    "model": ("model_tag",),
    "served_model_name": (),
    "host": (),
    "port": (),
    "uds": (),
    "root_path": (),
    "tensor_parallel_size": ("tp",),
    "pipeline_parallel_size": ("pp",),
    "prefill_context_parallel_size": ("pcp",),
    "decode_context_parallel_size": ("dcp",),
    "data_parallel_size": ("dp",),
    "data_parallel_size_local": ("dpl",),
    "data_parallel_rank": ("dpn",),
    "data_parallel_start_rank": ("dpr",),
    "data_parallel_address": ("dpa",),
    "data_parallel_rpc_port": ("dpp",),
    "data_parallel_backend": ("dpb",),
    "api_server_count": ("asc",),
    "nnodes": ("n",),
    "node_rank": ("r",),
    "master_addr": (),
    "master_port": (),
    "distributed_executor_backend": (),
    "data_parallel_supervisor_port": (),
    "distributed_timeout_seconds": (),
    "device": (),
    "device_ids": (),
    "load_format": (),
    "speculative_config": ("sc",),
    "speculative_model": (),
    "compilation_config": ("cc",),
    "quantization": ("q",),
    "tokenizer": (),
    "tokenizer_mode": (),
    "revision": (),
    "dtype": (),
    "max_model_len": (),
    "max_num_seqs": (),
    "gpu_memory_utilization": (),
    "kv_cache_memory_bytes": (),
    "kv_cache_dtype": (),
    "ssl_certfile": (),
    "ssl_keyfile": (),
    "ssl_ca_certs": (),
    "api_key": (),
    "hf_token": (),
    "uvicorn_log_level": (),
    "config": (),
}
_SWITCHES: tuple[str, ...] = (
    "headless",
    "grpc",
    "enforce_eager",
    "enable_expert_parallel",
    "data_parallel_hybrid_lb",
    "data_parallel_external_lb",
    "data_parallel_multi_port_external_lb",
    "trust_remote_code",
    "disable_uvicorn_access_log",
)
#: short switches
_SHORT = {
    "ep": "enable_expert_parallel",
    "dph": "data_parallel_hybrid_lb",
    "dpe": "data_parallel_external_lb",
    "dpm": "data_parallel_multi_port_external_lb",
}
_SWITCH_SHAPE = regex(r"^(?:no|enable|disable|skip|trust|use|allow|show|return|async|calculate|enforce)_|^O\d")
FLAGS = Flags(_ALIASES, _SWITCHES, _SWITCH_SHAPE, model="model")


def parse(tail: tuple[str, ...], *, serve: bool = False, config: ReadConfig | None = None) -> dict[str, object]:
    """Full argument name -> value (``Flags.parse``). ``serve``: the first bare word is the model."""
    spelled = tuple(f"--{_SHORT[word[1:]]}" if word[:1] == "-" and word[1:] in _SHORT else word for word in tail)
    return FLAGS.parse(spelled, bare_model=serve, config=config)


def full_name(flag: str) -> str:
    """vLLM's name for a flag."""
    return FLAGS.full_name(flag)
