"""Log lines of vLLM 0.32.0 on GPUs, as far as the demo plays them."""

from __future__ import annotations

from sgmon.demo.play import Play
from sgmon.demo.played.vllm.logger import info

_LOGO = (
    "",
    "       █     █     █▄   ▄█",
    " ▄▄ ▄█ █     █     █ ▀▄▀ █  version {version}",
    "  █▄█▀ █     █     █     █  model   {model}",
    "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀",
    "",
)
_ROUTES = (
    "/health",
    "/load",
    "/ping",
    "/version",
    "/v1/models",
    "/v1/completions",
    "/v1/chat/completions",
    "/metrics",
)


def arguments(play: Play) -> None:
    """Banner and arguments."""
    for line in _LOGO:
        info("api_utils.py:347", line.format(version=play.version, model=play.model_path))
    values = {
        "model_tag": play.model_path,
        "host": "127.0.0.1",
        "port": play.port,
        "model": play.model_path,
        "max_model_len": 32768,
        "tensor_parallel_size": play.tp,
    }
    info("api_utils.py:286", f"non-default args: {values}")


def configuration(play: Play) -> None:
    info("model.py:733", f"Resolved architecture: {play.scenario.model_type}")
    info("model.py:2152", "Using max model len 32768")
    info("scheduler.py:256", "Chunked prefill is enabled with max_num_batched_tokens=8192.")


def engine(play: Play) -> None:
    info(
        "core.py:133",
        f"Initializing a V1 LLM engine (v{play.version}) with config: model='{play.model_path}', "
        f"speculative_config=None, tokenizer='{play.model_path}', dtype=torch.bfloat16, max_seq_len=32768, "
        f"load_format=auto, tensor_parallel_size={play.tp}, pipeline_parallel_size=1, data_parallel_size=1, "
        "disable_custom_all_reduce=False, quantization=fp8, enforce_eager=False, device_config=cuda, seed=0",
    )
    info(
        "multiproc_executor.py:153",
        "DP group leader: node_rank=0, node_rank_within_dp=0, master_addr=127.0.0.1, "
        f"mq_connect_ip=192.0.2.2 (local), world_size={play.tp}, local_world_size={play.tp}",
    )


def http(play: Play) -> None:
    info("entry.py:136", "Supported tasks: ['generate']")
    play.pause(0.8)
    info("entry.py:140", f"Starting vLLM server on http://127.0.0.1:{play.port}")
    info("launcher.py:186", "Available routes are:")
    for route in _ROUTES:
        info("launcher.py:195", f"Route: {route}, Methods: {'POST' if 'completions' in route else 'GET'}")
