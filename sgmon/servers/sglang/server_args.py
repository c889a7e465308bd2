"""SGLang's arguments as found (a name -> value mapping) made into ``ServerArgs``; used for the log line and for argv.

Names and defaults: sglang 0.4.1.post7 ... 0.5.23, ``srt/server_args.py`` and ``srt/arg_groups/fields/*.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from sgmon.model.server import ServerArgs
from sgmon.servers.family import Launch, ReadConfig
from sgmon.servers.sglang.args import parse
from sgmon.servers.values import Values

DEFAULT_PORT = 30000


def from_launch(launch: Launch, read_config: ReadConfig) -> ServerArgs:
    """The arguments of a launch whose command line is to be seen (``launch.tail`` is not None)."""
    return from_mapping(parse(launch.tail or (), serve=launch.form == "serve", config=read_config))


def from_mapping(values: Mapping[str, object]) -> ServerArgs:
    """``ServerArgs`` from names and values in any spelling ("tp_size", "--tp-size"); values typed or text.

    Names must be SGLang's full ones; resolving abbreviations is the command-line parser's work.
    """
    found = Values(values)
    attn_dp = found.whole(1, "attn_dp_size", "attention_data_parallel_size")
    dp = found.whole(1, "dp_size", "data_parallel_size")
    port = found.whole(DEFAULT_PORT, "port")
    gate = found.number("gated_launch_port")
    return ServerArgs(
        model_path=found.text("model_path", "model"),
        served_name=found.text("served_model_name"),
        host=found.text("host") or "127.0.0.1",
        port=port if 0 <= port < 65536 else DEFAULT_PORT,
        tp=max(1, found.whole(1, "tp_size", "tensor_parallel_size")),
        dp=max(1, dp, attn_dp),
        pp=max(1, found.whole(1, "pp_size", "pipeline_parallel_size")),
        ep=max(1, found.whole(1, "ep_size", "expert_parallel_size", "ep")),
        nnodes=max(1, found.whole(1, "nnodes")),
        node_rank=max(0, found.whole(0, "node_rank")),
        dp_attention=found.truth("enable_dp_attention") or attn_dp > 1,
        dist_init_addr=found.text("dist_init_addr", "nccl_init_addr"),
        dist_timeout_s=found.number("dist_timeout"),
        base_gpu_id=found.whole(0, "base_gpu_id"),
        gpu_id_step=found.whole(1, "gpu_id_step"),
        load_format=found.text("load_format") or "auto",
        device=found.text("device"),
        skip_server_warmup=found.truth("skip_server_warmup"),
        disable_cuda_graph=found.truth("disable_cuda_graph")
        or found.text("cuda_graph_backend_decode").lower() == "disabled",
        gated_launch_port=None if gate is None else int(gate),
        disaggregation_mode=found.text("disaggregation_mode"),
        ssl=bool(found.text("ssl_certfile") or found.text("ssl_keyfile")),
        wait_weights=found.truth("checkpoint_engine_wait_weights_before_ready"),
        raw=found.shown(),
    )
