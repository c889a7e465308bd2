"""The server's arguments from its command line, as argparse read them.

Spellings: sglang 0.4.1.post7 ... 0.5.23 (srt/server_args.py, srt/arg_groups/fields/*.py). The parser is a plain
``argparse.ArgumentParser`` with abbreviations allowed: ``--tp 8`` and ``--dp 2`` are legal and common.
"""

from __future__ import annotations

from sgmon.patterns import regex
from sgmon.servers.family import ReadConfig
from sgmon.servers.flags import Flags

#: full name -> other spellings of the same argument
_ALIASES: dict[str, tuple[str, ...]] = {
    "model_path": ("model",),
    "served_model_name": (),
    "host": (),
    "port": (),
    "tp_size": ("tensor_parallel_size",),
    "dp_size": ("data_parallel_size",),
    "attn_dp_size": ("attention_data_parallel_size",),
    "pp_size": ("pipeline_parallel_size",),
    "ep_size": ("expert_parallel_size", "ep"),
    "attn_cp_size": ("attention_context_parallel_size",),
    "moe_dp_size": ("moe_data_parallel_size",),
    "nnodes": (),
    "node_rank": (),
    "dist_init_addr": ("nccl_init_addr",),
    "dist_timeout": (),
    "nccl_port": (),
    "base_gpu_id": (),
    "gpu_id_step": (),
    "load_format": (),
    "device": (),
    "gated_launch_port": (),
    "weight_cache_mode": (),
    "speculative_algorithm": ("speculative_algo",),
    "disaggregation_mode": (),
    "watchdog_timeout": (),
    "soft_watchdog_timeout": (),
    "ssl_certfile": (),
    "ssl_keyfile": (),
    "ssl_keyfile_password": (),
    "api_key": (),
    "admin_api_key": (),
    "log_level": (),
    "log_level_http": (),
    "cuda_graph_backend_decode": (),
    "config": (),
    "revision": (),
    "tokenizer_worker_num": (),
}
_SWITCHES: tuple[str, ...] = (
    "skip_server_warmup",
    "disable_cuda_graph",
    "enable_dp_attention",
    "checkpoint_engine_wait_weights_before_ready",
    "trust_remote_code",
    "use_ray",
    "encoder_only",
)
#: further flags without a value, by SGLang's habit of naming them
_SWITCH_SHAPE = regex(r"^(?:enable|disable|skip|trust|use|allow|show|sleep|encoder_only|stream)_")
FLAGS = Flags(_ALIASES, _SWITCHES, _SWITCH_SHAPE, model="model_path")


def parse(tail: tuple[str, ...], *, serve: bool = False, config: ReadConfig | None = None) -> dict[str, object]:
    """Full argument name -> value (``Flags.parse``). ``serve``: the first bare word is the model."""
    return FLAGS.parse(tail, bare_model=serve, config=config)


def full_name(flag: str) -> str:
    """SGLang's name for a flag."""
    return FLAGS.full_name(flag)
