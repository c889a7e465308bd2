"""The GPUs against the driver, torch's build and the model's quantisation."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.foresight.start import Start, doubt, fine, unknown
from sgmon.model.preflight import Forecast, ModelFolder
from sgmon.model.verdict import NextStep

#: quantisation -> the oldest CUDA generation with units for it; older ones emulate it or refuse
#: (sglang srt/layers/quantization/*.py get_min_capability; vLLM docs, "Supported Hardware")
GENERATIONS: dict[str, float] = {
    "fp8": 8.0,
    "w8a8_fp8": 8.9,
    "modelopt": 8.9,
    "modelopt_fp8": 8.9,
    "modelopt_fp4": 10.0,
    "mxfp4": 8.0,
    "nvfp4": 10.0,
    "awq": 7.5,
    "awq_marlin": 8.0,
    "gptq": 6.0,
    "gptq_marlin": 8.0,
    "compressed-tensors": 7.0,
    "bitsandbytes": 7.0,
}
#: CUDA's major version -> the oldest driver branch that runs it (docs.nvidia.com/deploy/cuda-compatibility, "CUDA
#: Minor Version Compatibility")
DRIVERS = {11: 450, 12: 525, 13: 580}


def driver(start: Start) -> Iterator[Forecast]:
    """The driver is new enough for the CUDA version that torch is built for. A package of forward compatibility may
    make up for it."""
    major, branch = _leading(start.facts.installed.cuda), _leading(start.driver)
    least = DRIVERS.get(major or 0)
    if start.on_cpu or least is None or branch is None:
        return
    text = f"driver {start.driver}, torch is built for CUDA {start.facts.installed.cuda}"
    if branch < least:
        step = NextStep(f"Take a driver of branch {least} or newer, or torch for an older CUDA", "nvidia-smi")
        yield doubt("driver", "driver", f"{text}, which wants branch {least}", step, signal="gpu")
    else:
        yield fine("driver", "driver", text, "gpu")


def _leading(version: str) -> int | None:
    first = version.split(".")[0]
    return int(first) if first.isdigit() else None


def quantisation(start: Start) -> Iterator[Forecast]:
    """The GPUs have units for the model's quantisation."""
    method = start.options.quantization or _method(start.facts.model)
    least = GENERATIONS.get(method.lower())
    seen = [gpu for gpu in start.gpus if gpu.capability is not None]
    if not method or start.on_cpu or least is None:
        return
    if not seen:
        yield unknown("quantisation", "quantisation", f"{method}: the generation of the GPUs is not known", "gpu")
        return
    old = [gpu for gpu in seen if gpu.capability is not None and gpu.capability < least]
    if old:
        text = f"{method} wants compute capability {least}; GPU {old[0].index} has {old[0].capability}"
        yield doubt(
            "quantisation", "quantisation", text, NextStep("Look for a model in another format"), signal="gpu"
        )
    else:
        yield fine("quantisation", "quantisation", method, "gpu")


def _method(model: ModelFolder | None) -> str:
    return str((model.get("quant_method") if model is not None else "") or "")
