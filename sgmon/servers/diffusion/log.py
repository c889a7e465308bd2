"""How the diffusion server writes its log: ``[MM-DD HH:MM:SS] message``, arguments as JSON, a bar over modules."""

from __future__ import annotations

import msgspec

from sgmon.model.server import ServerArgs
from sgmon.patterns import regex
from sgmon.servers.family import LogRules

_ARGS = regex(r"server_args: (\{.*\})")


def args_in(text: str) -> ServerArgs | None:
    """The arguments in a ``server_args: {...}`` line, or None."""
    match = _ARGS.search(text)
    if match is None:
        return None
    try:
        found = msgspec.json.decode(match[1].encode("utf-8", "replace"))
    except msgspec.DecodeError:
        return None
    if not isinstance(found, dict):
        return None
    port, parallel = found.get("port"), found.get("tp_size")
    return ServerArgs(
        model_path=str(found.get("model_path") or ""),
        tp=parallel if isinstance(parallel, int) and parallel > 0 else 1,
        port=port if isinstance(port, int) else 30000,
        raw=tuple((str(name), str(value)) for name, value in found.items() if "key" not in str(name).lower()),
    )


RULES = LogRules(
    family="sglang-diffusion",
    folder="sgmon.servers.diffusion",
    errors="sgmon.servers.sglang",
    record=regex(r"\[(?P<time>\d\d-\d\d \d\d:\d\d:\d\d)\] "),
    inner=regex(r"\[\d\d-\d\d \d\d:\d\d:\d\d\] "),
    inner_hints=("[",),
    dated="[",
    rank=lambda text: text,
    speaks=regex(r"\[\d\d-\d\d \d\d:\d\d:\d\d\] |multimodal_gen"),
    args=args_in,
    restart="server_args: {",
    sizes=(("tp", "tp_size"), ("dp", "dp_size"), ("pp", "pp_size"), ("ep", "ep_size"), ("nnodes", "nnodes")),
    version=regex(r"\bsglang(?:==|[ _]version[=: ]+'?)(\d+\.\d+\.\d+(?:\.?post\d+)?)"),
    fatal_header=regex(r"hit an exception|^Fatal Python error|Server warmup failed; aborting"),
    benign_header=regex(r"Ignore import error|Exception in ASGI application"),
    died=regex(r"Rank (?P<n>\d+) scheduler (?:died|is dead)"),
    more=("server_args: {", "sglang=="),
    bars=(("Loading required modules", "weights_progress"), ("checkpoint shards", "weights_progress")),
    begins=("[", "I"),
)
