"""The log lines of the two versions that the demo plays: 0.5.23 (recorded) and 0.5.9 (read in its wheel)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from sgmon.demo.play import Play

#: models whose import fails in a lean installation; harmless, and in every good start
_ABSENT = (
    ("falcon_mamba", "cannot import name 'causal_conv1d_fn' from 'sglang.srt.layers.attention.mamba.mamba'"),
    ("inkling", "No module named 'helion'"),
    ("mamba", "cannot import name 'causal_conv1d_fn' from 'sglang.srt.layers.attention.mamba.mamba'"),
    ("midashenglm", "No module named 'torchaudio'"),
    ("glm_asr", "No module named 'torchaudio'"),
    ("kimi_audio", "No module named 'torchaudio'"),
    ("qwen3_asr", "No module named 'torchaudio'"),
    ("whisper", "No module named 'torchaudio'"),
    ("step3_vl", "No module named 'einops'"),
    ("ernie45_vl", "No module named 'decord'"),
    ("internvl", "No module named 'decord'"),
    ("llava_video", "No module named 'decord'"),
    ("deepseek_ocr", "No module named 'addict'"),
    ("gemma4_audio", "No module named 'torchaudio'"),
    ("moss_vl", "No module named 'decord'"),
    ("nemotron_omni", "No module named 'librosa'"),
    ("phi4mm_audio", "No module named 'torchaudio'"),
)


@cache
def _defaults(version: str) -> dict[str, Any]:
    path = Path(__file__).parent / "data" / f"server_args-{version}.json"
    values: dict[str, Any] = json.loads(path.read_text())
    return values


def server_args_line(play: Play) -> str:
    """One line of 11-19 kB: ServerArgs(...) up to 0.5.18, a dict from 0.5.20 on."""
    values = dict(_defaults(play.version))
    values.update(
        model_path=play.model_path,
        tokenizer_path=play.model_path,
        served_model_name=play.model_path,
        host="127.0.0.1",
        port=play.port,
        tp_size=play.tp,
        nnodes=play.nnodes,
        node_rank=0,
    )
    if play.nnodes > 1:
        values["dist_init_addr"] = f"127.0.0.1:{play.dist_port}"
    if play.gate_port and "gated_launch_port" in values:
        values["gated_launch_port"] = play.gate_port
    if play.release() >= (0, 5, 20):
        return f"server_args={values}"
    return f"server_args=ServerArgs({', '.join(f'{name}={value!r}' for name, value in values.items())})"


def launcher_preface(play: Play) -> str:
    """What the imports of the main process leave in the log, in one go."""
    text = ""
    if play.release() >= (0, 5, 10):
        text = (
            f"{play.site}/sglang/launch_server.py:71: UserWarning: 'python -m sglang.launch_server' is still "
            "supported, but 'sglang serve' is the recommended entrypoint.\n"
            "  Example: sglang serve --model-path <model> [options]\n  warnings.warn(\n"
        )
    return text + (
        f"{play.site}/torch/cuda/__init__.py:63: FutureWarning: The pynvml package is deprecated. "
        "Please install nvidia-ml-py instead.\n  import pynvml  # type: ignore[import]\n"
    )


def transport_lines(play: Play) -> list[str]:
    """Written by the main process of a CUDA server while it resolves its arguments (0.5.17, H200)."""
    if play.release() < (0, 5, 17):
        return []
    return [
        "Multimodal feature transport auto-resolved to cuda_ipc (single-node CUDA). "
        "Pass --mm-feature-transport=cpu to opt out.",
        "Using CUDA IPC for multimodal features: reserving up to 1024 MiB on base GPU 0 across 1 tokenizer "
        "worker(s). This reduces KV cache headroom; a full pool falls back to CPU transport.",
        "CUDA IPC pool-handle caching is enabled. It reuses mappings to the existing bounded pool without "
        "reserving another pool; set SGLANG_USE_IPC_POOL_HANDLE_CACHE=0 to disable it.",
    ]


def child_warnings(play: Play) -> str:
    """UserWarnings of the imports, in every child."""
    return (
        f"{play.site}/sglang/srt/layers/quantization/awq/awq.py:53: UserWarning: "
        "Only CUDA, HIP and XPU support AWQ currently.\n"
        '  warnings.warn(f"Only CUDA, HIP and XPU support AWQ currently.")\n'
        f"{play.site}/sglang/srt/layers/quantization/gguf.py:76: UserWarning: "
        "Only CUDA, MUSA and NPU support GGUF quantization currently.\n"
        '  warnings.warn(f"Only CUDA, MUSA and NPU support GGUF quantization currently.")\n'
    )


def ignored_imports(play: Play, rank: int) -> list[str]:
    lines = []
    for model, reason in _ABSENT[: play.scenario.noise]:
        where = f" ({play.site}/sglang/srt/layers/attention/mamba/mamba.py)" if "cannot" in reason else ""
        lines.append(f"Ignore import error when loading sglang.srt.models.{model}: {reason}{where}")
    return lines


def kv_dtype_line() -> str:
    """tp_rank 0, 0.5.3 to 0.5.12."""
    return "Using KV cache dtype: torch.bfloat16"


def kv_cache_line(play: Play, tokens: int, size_gib: float) -> str:
    """Every rank; the dtype stands in it from 0.5.14 on."""
    dtype = "dtype: torch.bfloat16, " if play.release() >= (0, 5, 14) else ""
    half = size_gib / 2
    return f"KV Cache is allocated. {dtype}#tokens: {tokens}, K size: {half:.2f} GB, V size: {half:.2f} GB"


def scheduler_summary(tokens: int, free_gib: float) -> str:
    return (
        f"max_total_num_tokens={tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384, "
        f"max_running_requests=4096, context_len=40960, available_gpu_mem={free_gib:.2f} GB"
    )


def startup_timings(infos: list[dict[str, Any]], total_s: float) -> str:
    """The slowest rank of each part."""

    def most(name: str) -> float:
        return max(float(info["timings"].get(name, 0.0)) for info in infos)

    return (
        f"Engine startup timings (s): load_weight={most('load_weight'):.2f}, "
        f"kv_cache_allocation={most('kv_cache'):.2f}, scheduler_e2e={total_s * 0.7:.2f}, "
        f"cuda_graph={{prefill={most('prefill'):.2f}, decode={most('decode'):.2f}, target_verify=0.00, "
        f"draft_prefill=0.00, draft_decode=0.00, draft_extend=0.00}}, tokenizer_e2e={total_s:.2f}"
    )


def prefill_batch(play: Play) -> str:
    extra = "#pending-token: 0, cuda graph: False, " if play.release() >= (0, 5, 14) else ""
    return (
        "Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0, "
        f"#queue-req: 0, {extra}input throughput (token/s): 0.69"
    )
