"""The diffusion server's command lines, arguments, titles and ranks.

Facts: sglang 0.5.23 multimodal_gen/runtime/launch_server.py (``_start_scheduler_processes``), runtime/server_args/
server_args.py, runtime/managers/gpu_worker.py (titles), cli/serve.py: ``sglang serve`` starts it for a diffusion
model, with the same words as another model; the titles of its workers tell it then.
"""

from __future__ import annotations

from sgmon.model import Role, ServerArgs
from sgmon.patterns import regex
from sgmon.servers.command import command_of
from sgmon.servers.family import Launch, ReadConfig, Slot
from sgmon.servers.flags import Flags
from sgmon.servers.values import Values

DEFAULT_PORT = 30000
_MODULE = "sglang.multimodal_gen.runtime.launch_server"
_CLI = "sglang.multimodal_gen.runtime.entrypoints.cli.main"
_TITLE = "sgl_diffusion::"
#: of the title: sizes of 1 are not in it, and without any the local rank is
_TOKEN = regex(r"_(TP|U|R|C)(\d+)")
_NUMBER = regex(r"scheduler_(\d+)$")
_FLAGS = Flags(
    {
        **dict.fromkeys(("served_model_name", "host", "port", "num_gpus", "nnodes", "node_rank", "config"), ()),
        **dict.fromkeys(("master_port", "scheduler_port", "dist_init_addr", "api_key", "log_level"), ()),
        "model_path": ("model",),
        "tp_size": ("tensor_parallel_size",),
    },
    (),
    regex(r"^(?:enable|disable|skip|trust|use|allow|webui)"),
    model="model_path",
)


def recognise(argv: tuple[str, ...]) -> Launch | None:
    """The launch that only this server has."""
    command = command_of(argv)
    if command is None:
        return None
    module = command.kind == "module"
    if command.name == _MODULE if module else command.name.endswith(f"{_MODULE.replace('.', '/')}.py"):
        return Launch("module", command.tail)
    serves = module and command.name == _CLI and command.tail[:1] == ("serve",)
    return Launch("serve", command.tail[1:]) if serves else None


def role_of(argv: tuple[str, ...]) -> Role:
    return Role.WORKER if argv and argv[0].startswith(_TITLE) else Role.OTHER


def role_of_comm(comm: str) -> Role:
    return Role.WORKER if comm.startswith(_TITLE[:15]) else Role.OTHER


def rank_of(title: str) -> str:
    """ "sgl_diffusion::scheduler_TP1_U0" -> "TP1 U0"; "sgl_diffusion::scheduler_1", the second one here -> "W1"."""
    found = _TOKEN.findall(title)
    number = _NUMBER.search(title)
    return " ".join(name + at for name, at in found) or (f"W{number[1]}" if number is not None else "")


def expected_children(parent: Role, args: ServerArgs, version: str = "") -> tuple[Slot, ...]:
    """One worker a GPU of this node. What the title will call it depends on how the sizes are resolved."""
    if parent is not Role.LAUNCHER:
        return ()
    gpus = dict(args.raw).get("num_gpus", "")
    count = max(1, int(gpus) // max(1, args.nnodes)) if gpus.isdigit() else 1
    return tuple(Slot(Role.WORKER, f"W{at}") for at in range(count))


def gpu_of(args: ServerArgs, rank: str) -> int | None:
    return int(rank[1:]) if rank[:1] == "W" and rank[1:].isdigit() else None


def full_flag(flag: str) -> str:
    return _FLAGS.full_name(flag)


def parse_args(launch: Launch, read_config: ReadConfig) -> ServerArgs:
    """The arguments of a launch whose command line is to be seen."""
    found = Values(_FLAGS.parse(launch.tail or (), bare_model=launch.form == "serve", config=read_config))
    port = found.whole(DEFAULT_PORT, "port")
    return ServerArgs(
        model_path=found.text("model_path"),
        served_name=found.text("served_model_name"),
        host=found.text("host") or "127.0.0.1",
        port=port if 0 <= port < 65536 else DEFAULT_PORT,
        tp=max(1, found.whole(1, "tp_size")),
        nnodes=max(1, found.whole(1, "nnodes")),
        node_rank=max(0, found.whole(0, "node_rank")),
        dist_init_addr=found.text("dist_init_addr"),
        raw=found.shown(),
    )
