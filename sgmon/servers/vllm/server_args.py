"""vLLM's arguments (a name -> value mapping) made into ``ServerArgs``; used for the log line and for argv."""

from __future__ import annotations

from collections.abc import Mapping

from sgmon.model.server import ServerArgs
from sgmon.servers.family import Launch, ReadConfig
from sgmon.servers.values import Values
from sgmon.servers.vllm.args import parse

DEFAULT_PORT = 8000


def from_launch(launch: Launch, read_config: ReadConfig) -> ServerArgs:
    """The arguments of a launch whose command line is to be seen (``launch.tail`` is not None)."""
    return from_mapping(parse(launch.tail or (), serve=launch.form != "module", config=read_config))


def _further_ports(found: Values, port: int) -> tuple[int, ...]:
    """With a supervisor each replica of this node has a port of its own, and so has the supervisor (0.22 on,
    entrypoints/launchers/dp_supervisor.py)."""
    if not found.truth("data_parallel_multi_port_external_lb"):
        return ()
    local = found.whole(found.whole(1, "data_parallel_size"), "data_parallel_size_local")
    return (*range(port + 1, port + max(1, min(local, 1024))), found.whole(9256, "data_parallel_supervisor_port"))


def from_mapping(values: Mapping[str, object]) -> ServerArgs:
    """``ServerArgs`` from vLLM's full names and values; values typed or text.

    The host is that of the command line; without one every address is bound.
    """
    found = Values(values)
    port = found.whole(DEFAULT_PORT, "port")
    address, master_port = found.text("master_addr"), found.whole(29501, "master_port")
    dp, rank = found.whole(1, "data_parallel_size"), found.number("data_parallel_rank")
    api_servers = found.number("api_server_count")
    return ServerArgs(
        model_path=found.text("model", "model_tag"),
        served_name=found.text("served_model_name"),
        host=found.text("host") or "0.0.0.0",
        port=port if 0 <= port < 65536 else DEFAULT_PORT,
        tp=max(1, found.whole(1, "tensor_parallel_size")),
        dp=max(1, dp, int(rank or 0) + 1),
        pp=max(1, found.whole(1, "pipeline_parallel_size")),
        nnodes=max(1, found.whole(1, "nnodes")),
        node_rank=max(0, found.whole(0, "node_rank")),
        dist_init_addr=f"{address}:{master_port}" if address else "",
        dist_timeout_s=found.number("distributed_timeout_seconds"),
        load_format=found.text("load_format") or "auto",
        device=found.text("device"),
        disable_cuda_graph=found.truth("enforce_eager"),
        ssl=bool(found.text("ssl_certfile") or found.text("ssl_keyfile")),
        headless=found.truth("headless"),
        api_servers=None if api_servers is None else int(api_servers),
        uds=found.text("uds"),
        further_ports=_further_ports(found, port),
        raw=found.shown(),
    )
