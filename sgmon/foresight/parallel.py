"""The parallel sizes against the model's heads, layers and experts, the nodes and the GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.foresight.start import Start, doomed, doubt, fine, label, unknown
from sgmon.model.preflight import Forecast
from sgmon.model.verdict import NextStep
from sgmon.units import plural

_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "num_routed_experts")


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
    elif start.on_cpu or start.family.start.pads_heads(start.args) or _without_cuda(start):
        yield doubt("heads", check, f"{bad}; they may be padded or divided otherwise here", step, signal="args")
    elif asserts:
        why = f"{start.facts.installed.model_file} of the installed version says: {asserts[0]}"
        yield doomed("heads", check, bad, why, start.phase("weights"), step, signal="args")
    else:
        yield doubt("heads", check, bad, step, signal="args")


def _without_cuda(start: Start) -> bool:
    """Whether torch is here and is built without CUDA: the device is another one, whatever the arguments say."""
    return bool(start.facts.installed.package("torch")) and not start.facts.installed.cuda


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
    model, ep = start.facts.model, start.args.ep
    if model is None or model.config is None or not start.options.experts_divided:
        return
    total = next((n for name in _EXPERTS if (n := model.number(name))), None)
    check = f"{ep} expert ranks" if ep > 1 else "experts"
    kind = f"{model.get('model_type')} {model.get('architectures')}".lower()
    if total is None and (model.get("experts_named") or "moe" in kind):
        yield unknown("experts", check, "the config does not say how many experts there are", "args")
    elif total is None:
        yield _no_experts(start, check, label(model))
    elif ep > 1 and total % ep:
        yield doubt("experts", check, f"{total} experts cannot be divided among {ep} ranks", signal="args")
    else:
        yield fine("experts", check, f"{total} experts" + (f" over {ep} ranks" if ep > 1 else ""), "args")


def _no_experts(start: Start, check: str, model: str) -> Forecast:
    text = f"{model} has no experts to divide"
    step = NextStep("Leave expert parallelism out")
    if "experts-wanted" in start.facts.installed.proofs:
        why = "the installed version refuses expert parallelism for a config without experts"
        return doomed("experts", check, text, why, start.phase("arguments"), step, signal="args")
    return doubt("experts", check, text, step, signal="args")


def nodes(start: Start) -> Iterator[Forecast]:
    """The ranks can be divided among the nodes."""
    args = start.args
    if args.nnodes < 2 or start.options.any_nodes or (args.tp * args.pp) % args.nnodes == 0:
        return
    text = f"{args.tp * args.pp} ranks cannot be divided among {args.nnodes} nodes"
    step = NextStep("Start with sizes that fit the nodes")
    if "nodes-divide" in start.facts.installed.proofs:
        why = "the installed version refuses such sizes before it starts a rank"
        yield doomed("nodes", "nodes", text, why, start.phase("arguments"), step, signal="args")
    else:
        yield doubt("nodes", "nodes", text, step, signal="args")


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
