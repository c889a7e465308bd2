"""The model against the installed version, the parallel sizes and the GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.foresight.start import Start, doomed, doubt, fine, label, unknown
from sgmon.model.preflight import Forecast, ModelFolder, Place
from sgmon.model.verdict import NextStep
from sgmon.units import plural

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
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "num_routed_experts")


def architecture(start: Start) -> Iterator[Forecast]:
    """The installed version knows the model's class. An unknown one may still run by the transformers backend."""
    model, known = start.facts.model, start.facts.installed.architectures
    names = str((model.get("architectures") if model else "") or "").split(",")
    if model is None or not names[0]:
        return
    if known is None:
        yield unknown("architecture", "architecture", f"{names[0]}: the installed version was not looked into")
    elif set(names) & set(known):
        yield fine("architecture", "architecture", f"{names[0]} ({start.facts.installed.model_file})")
    else:
        text = (
            f"{names[0]} is none of the {len(known)} architectures of {start.family.label} {start.version}".rstrip()
        )
        step = NextStep(f"Look whether a newer {start.family.label} has it, or start with the transformers backend")
        yield doubt("architecture", "architecture", text, step)


def remote_code(start: Start) -> Iterator[Forecast]:
    """A config with ``auto_map`` brings code of its own, which runs only when that is allowed. A class that the
    server has itself needs none of it."""
    for folder in (start.facts.model, start.facts.draft):
        if folder is None or not folder.get("auto_map") or start.options.trust_remote_code:
            continue
        text = f"{label(folder)} brings code of its own (auto_map), and --trust-remote-code is not given"
        yield doubt("remote-code", "remote code", text, NextStep("If the start asks for it: add --trust-remote-code"))


def heads(start: Start) -> Iterator[Forecast]:
    """The heads can be divided among the ranks. Sure only where the model's file of the installed version says so
    itself: other classes and devices pad or replicate."""
    model = start.facts.model
    if model is None or start.args.tp == 1:
        return
    total, shared = model.number("num_attention_heads"), model.number("num_key_value_heads")
    if total is None:
        return
    ranks = _attention_ranks(start)
    check = f"{ranks} ranks, {total} heads"
    bad = _indivisible(total, shared, ranks)
    if not bad:
        yield fine(
            "heads", check, f"{total} heads{f', {shared} KV heads' if shared else ''} over {ranks} ranks", "args"
        )
        return
    sizes = ", ".join(str(n) for n in range(1, total + 1) if not _indivisible(total, shared, n))
    step = NextStep(f"Start with a TP size that fits: {sizes}")
    asserts = [one for one in start.facts.installed.asserts if ("kv" in one) == ("KV" in bad)]
    if "heads-divisible" in start.facts.installed.proofs and "attention heads" in bad:
        why = "the installed version refuses such a config for every model, before it loads anything"
        yield doomed("heads", check, bad, why, start.phase("arguments"), step, signal="args")
    elif start.family.start.pads_heads(start.args):
        yield doubt("heads", check, f"{bad}; they may be padded or divided otherwise here", step, signal="args")
    elif asserts:
        why = f"{start.facts.installed.model_file} of the installed version says: {asserts[0]}"
        yield doomed("heads", check, bad, why, start.phase("weights"), step, signal="args")
    else:
        yield doubt("heads", check, bad, step, signal="args")


def _attention_ranks(start: Start) -> int:
    """Over how many ranks the attention is divided: with DP attention each group has its own."""
    args = start.args
    return max(1, args.tp // args.dp) if args.dp_attention and args.dp > 1 else args.tp


def _indivisible(total: int, shared: int | None, ranks: int) -> str:
    """Why these heads cannot be divided; "" when they can. KV heads are replicated where there are more ranks."""
    if total % ranks:
        return f"{total} attention heads cannot be divided among {ranks} ranks"
    if shared and (shared % ranks if shared >= ranks else ranks % shared):
        return f"{shared} KV heads cannot be divided among {ranks} ranks"
    return ""


def stages(start: Start) -> Iterator[Forecast]:
    """There are layers for each pipeline stage."""
    model = start.facts.model
    layers = None if model is None else model.number("num_hidden_layers")
    if layers is None or start.args.pp == 1:
        return
    check = f"{start.args.pp} stages, {layers} layers"
    if start.args.pp > layers:
        text = f"{layers} layers are fewer than {start.args.pp} pipeline stages"
        yield doubt("layers", check, text, NextStep("Start with fewer pipeline stages"), signal="args")
    else:
        yield fine("layers", check, f"{layers} layers over {start.args.pp} stages", "args")


def experts(start: Start) -> Iterator[Forecast]:
    """The experts can be divided among the ranks of expert parallelism. Redundant experts may make up for it."""
    model = start.facts.model
    if model is None or start.args.ep == 1:
        return
    total = next((n for name in _EXPERTS if (n := model.number(name))), None)
    check = f"{start.args.ep} expert ranks"
    if total is None:
        yield doubt("experts", check, f"{label(model)} has no experts to divide", signal="args")
    elif total % start.args.ep:
        yield doubt("experts", check, f"{total} experts cannot be divided among {start.args.ep} ranks", signal="args")
    else:
        yield fine("experts", check, f"{total} experts over {start.args.ep} ranks", "args")


def nodes(start: Start) -> Iterator[Forecast]:
    """The ranks can be divided among the nodes."""
    args = start.args
    if args.nnodes > 1 and (args.tp * args.pp) % args.nnodes:
        text = f"{args.tp * args.pp} ranks cannot be divided among {args.nnodes} nodes"
        yield doubt("nodes", "nodes", text, NextStep("Start with sizes that fit the nodes"), signal="args")


def devices(start: Start) -> Iterator[Forecast]:
    """Each rank has a GPU: the driver lists, and CUDA_VISIBLE_DEVICES shows, as many as the ranks here need."""
    wanted = [number for number in start.family.start.gpus(start.args, start.version) if number is not None]
    if start.on_cpu or not wanted or not start.cards:
        return
    visible = start.facts.variable("CUDA_VISIBLE_DEVICES")
    shown = len([word for word in visible.split(",") if word.strip()]) if visible else start.cards
    there = f"CUDA_VISIBLE_DEVICES={visible} shows {shown}" if visible else f"{plural(shown, 'GPU')} here"
    if max(wanted) < shown:
        yield fine("devices", "GPUs", there, "args")
        return
    text = f"{there}, and the ranks of this node need {max(wanted) + 1}"
    step = NextStep("Show more GPUs, or start with a smaller TP size", "nvidia-smi -L")
    if start.facts.away or start.args.nnodes > 1:
        yield doubt("devices", "GPUs", text, step, signal="args")
        return
    why = "a rank cannot use a device that its process does not see (invalid device ordinal)"
    yield doomed("devices", "GPUs", text, why, start.phase("rendezvous"), step, signal="args")


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


def chat_template(start: Start) -> Iterator[Forecast]:
    """A chat template: without one the server starts, and chat requests fail or get a guessed one."""
    folder = start.facts.tokenizer or start.facts.model
    if folder is None or folder.place is not Place.FOLDER or start.options.no_tokenizer or not folder.names:
        return
    if folder.get("chat_template") or "chat_template.jinja" in folder.names or "chat_template.json" in folder.names:
        yield fine("chat-template", "chat template", "there")
    else:
        yield doubt("chat-template", "chat template", f"{label(folder)} has none: chat requests may fail")


def _method(model: ModelFolder | None) -> str:
    return str((model.get("quant_method") if model is not None else "") or "")
