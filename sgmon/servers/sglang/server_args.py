"""SGLang's arguments as found (a name -> value mapping) made into ``ServerArgs``; used for the log line and for argv.

Names and defaults: sglang 0.4.1.post7 ... 0.5.23, ``srt/server_args.py`` and ``srt/arg_groups/fields/*.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from sgmon.model.server import ServerArgs
from sgmon.servers.family import Launch, ReadConfig
from sgmon.servers.sglang.args import parse
from sgmon.text import MASK, clean, is_secret_name, mask

DEFAULT_PORT = 30000
#: Longest value kept in ``ServerArgs.raw``.
VALUE_LIMIT = 400

_UNSET = (None, "", "None", "null")


def from_launch(launch: Launch, read_config: ReadConfig) -> ServerArgs:
    """The arguments of a launch whose command line is to be seen (``launch.tail`` is not None)."""
    return from_mapping(parse(launch.tail or (), serve=launch.form == "serve", config=read_config))


def from_mapping(values: Mapping[str, object]) -> ServerArgs:
    """``ServerArgs`` from names and values in any spelling ("tp_size", "--tp-size"); values typed or text.

    Names must be SGLang's full ones; resolving abbreviations is the command-line parser's work.
    """
    found = {_bare(name): value for name, value in values.items()}

    def text(*names: str) -> str:
        for name in names:
            value = found.get(name)
            if value not in _UNSET:
                return clean(mask(str(value)))
        return ""

    def whole(default: int, *names: str) -> int:
        for name in names:
            value = _number(found.get(name))
            if value is not None:
                return int(value)
        return default

    attn_dp = whole(1, "attn_dp_size", "attention_data_parallel_size")
    dp = whole(1, "dp_size", "data_parallel_size")
    port = whole(DEFAULT_PORT, "port")
    gate = _number(found.get("gated_launch_port"))
    return ServerArgs(
        model_path=text("model_path", "model"),
        served_name=text("served_model_name"),
        host=text("host") or "127.0.0.1",
        port=port if 0 < port < 65536 else DEFAULT_PORT,
        tp=max(1, whole(1, "tp_size", "tensor_parallel_size")),
        dp=max(1, dp, attn_dp),
        pp=max(1, whole(1, "pp_size", "pipeline_parallel_size")),
        ep=max(1, whole(1, "ep_size", "expert_parallel_size", "ep")),
        nnodes=max(1, whole(1, "nnodes")),
        node_rank=max(0, whole(0, "node_rank")),
        dp_attention=_truth(found.get("enable_dp_attention")) or attn_dp > 1,
        dist_init_addr=text("dist_init_addr", "nccl_init_addr"),
        dist_timeout_s=_number(found.get("dist_timeout")),
        base_gpu_id=whole(0, "base_gpu_id"),
        gpu_id_step=whole(1, "gpu_id_step"),
        load_format=text("load_format") or "auto",
        device=text("device"),
        skip_server_warmup=_truth(found.get("skip_server_warmup")),
        disable_cuda_graph=_truth(found.get("disable_cuda_graph"))
        or text("cuda_graph_backend_decode").lower() == "disabled",
        gated_launch_port=None if gate is None else int(gate),
        speculative_algorithm=text("speculative_algorithm"),
        disaggregation_mode="" if text("disaggregation_mode") == "null" else text("disaggregation_mode"),
        watchdog_timeout_s=_number(found.get("watchdog_timeout")),
        ssl=bool(text("ssl_certfile") or text("ssl_keyfile")),
        has_api_key=found.get("api_key") not in _UNSET,
        wait_weights=_truth(found.get("checkpoint_engine_wait_weights_before_ready")),
        log_level=text("log_level") or "info",
        raw=tuple((clean(name, 80), shown(name, value)) for name, value in found.items()),
    )


def shown(name: str, value: object) -> str:
    """One value as it may be shown: secrets masked, cleaned, cut."""
    if value is None:
        return "None"
    if is_secret_name(name.replace("-", "_")) and value not in _UNSET:
        return MASK
    return clean(mask(str(value)), VALUE_LIMIT)


def _bare(name: str) -> str:
    return name.strip().lstrip("-").replace("-", "_")


def _number(value: object) -> float | None:
    if isinstance(value, bool) or value in _UNSET:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if abs(number) < 1e15 else None


def _truth(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in ("true", "1", "yes", "on")
    return value is True or (isinstance(value, int) and value != 0)
