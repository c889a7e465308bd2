"""The server's arguments from its command line, as argparse read them.

Spellings: sglang 0.4.1.post7 ... 0.5.23 (srt/server_args.py, srt/arg_groups/fields/*.py). The parser is a plain
``argparse.ArgumentParser`` with abbreviations allowed: ``--tp 8`` and ``--dp 2`` are legal and common.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sgmon.servers.family import ReadConfig

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
_NAMES: dict[str, str] = {
    **{alias: name for name, aliases in _ALIASES.items() for alias in (name, *aliases)},
    **{name: name for name in _SWITCHES},
}
#: flags without a value, by SGLang's habit of naming them
_SWITCH_SHAPE = re.compile(r"^(?:enable|disable|skip|trust|use|allow|show|sleep|encoder_only|stream)_")
_NUMBER = re.compile(r"^-\d+(?:\.\d*)?$|^-\.\d+$")


def parse(tail: tuple[str, ...], *, serve: bool = False, config: ReadConfig | None = None) -> dict[str, object]:
    """Full argument name -> value (text, or True for a switch). ``config(path)`` reads a ``--config`` file, whose
    values come before the command line's. ``serve``: the first bare word is the model."""
    found: dict[str, object] = {}
    bare: list[str] = []
    at = 0
    while at < len(tail):
        word = tail[at]
        at += 1
        if not _is_flag(word):
            bare.append(word)
            continue
        flag, equals, value = word.partition("=")
        name = full_name(flag)
        values: list[str] = [value] if equals else []
        while not equals and at < len(tail) and not _is_flag(tail[at]):
            values.append(tail[at])
            at += 1
        keep, extra = _take(name, values)
        found.pop(name, None)  # the last one wins, and stands last
        found[name] = keep
        bare.extend(extra)
    if serve and bare and "model_path" not in found:
        found["model_path"] = bare[0]
    path = found.get("config")
    if config is not None and isinstance(path, str):
        return {**_full_names(config(path)), **found}
    return found


def full_name(flag: str) -> str:
    """SGLang's name for a flag: alias and abbreviation resolved. The server accepted it, so a prefix of one known
    flag means that flag (anything ambiguous would have ended argparse); an unknown one keeps its own name."""
    bare = flag.lstrip("-").replace("-", "_")
    if bare in _NAMES:
        return _NAMES[bare]
    matches = {_NAMES[known] for known in _NAMES if known.startswith(bare)}
    return matches.pop() if len(matches) == 1 else bare


def _is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not _NUMBER.match(word)


def _take(name: str, values: list[str]) -> tuple[object, list[str]]:
    """The value that belongs to the flag, and the words after it that do not."""
    if name in _SWITCHES:
        return True, values
    if name in _ALIASES:
        return (values[0] if values else ""), values[1:]
    if not values or _SWITCH_SHAPE.match(name):
        return True, values
    return " ".join(values), values[1:]  # unknown: it may take several, or the rest may be the model


def _full_names(values: Mapping[str, object]) -> dict[str, object]:
    return {full_name(str(name)): value for name, value in values.items()}
