"""Snapshots and events of a small start, made by hand."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.model import (
    Event,
    Evidence,
    LogReading,
    PortReading,
    Process,
    ProcsReading,
    Role,
    Server,
    ServerArgs,
    ServerReading,
    Snapshot,
    StartReading,
    Verdict,
)

EPOCH = 1_796_000_000.0
ARGS = ServerArgs(model_path="/models/m", tp=2, device="cpu", raw=(("model_path", "/models/m"), ("tp_size", "2")))
SERVER = Server(
    pid=4711,
    start_ticks=99,
    started_epoch=EPOCH - 1.0,
    argv=("python", "-m", "sglang.launch_server", "--model-path", "/models/m", "--tp", "2"),
    args=ARGS,
    version="0.5.23",
    log_path="/nowhere/server.log",
    log_kind="pipe",
)
START = StartReading(pid=4711, host="host-a", env=(("NCCL_DEBUG", "INFO"),), mount="ext4", cached=0.9)


def log_lines(epoch: float = EPOCH) -> str:
    """A start in the words of SGLang, dated from ``epoch`` on (local time, as SGLang prints it)."""
    from datetime import datetime

    def at(s: float) -> str:
        return f"{datetime.fromtimestamp(epoch + s):%Y-%m-%d %H:%M:%S}"

    return (
        f"[{at(5)}] server_args=ServerArgs(model_path='/models/m', tp_size=2, port=30000)\n"
        f"[{at(20)} TP0] Init torch distributed begin.\n"
        f"[{at(22)} TP0] Load weight begin. avail mem=78.00 GB\n"
        f"[{at(52)} TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=60 GB, mem usage=18 GB.\n"
        f"[{at(53)} TP0] KV Cache is allocated. #tokens: 4096, K size: 1.00 GB, V size: 1.00 GB\n"
        f"[{at(60)}] The server is fired up and ready to roll!\n"
    )


def events(text: str = "", log_t: float = 64.0) -> list[Event]:
    """Server, surroundings, processes, port, log (read at ``log_t``)."""
    ranks = tuple(
        Process(pid=4800 + n, ppid=4711, start_ticks=100 + n, role=Role.WORKER, rank=f"TP{n}", state="S", cpu_s=1.0)
        for n in range(2)
    )
    return [
        Event(0.2, "server", ServerReading(server=SERVER)),
        Event(0.3, "start", START),
        Event(0.4, "procs", ProcsReading(processes=ranks)),
        Event(0.45, "port", PortReading("127.0.0.1", 30000, "refused")),
        Event(log_t, "log", LogReading(path="/nowhere/server.log", text=text or log_lines(), kind="pipe", size=500)),
    ]


def snapshot(state: str = "progressing", t: float = 10.0, **changes: object) -> Snapshot:
    base = Snapshot(
        t=t,
        epoch=EPOCH,
        server=SERVER,
        server_seen_t=0.2,
        start=START,
        verdict=Verdict(state, f"headline of {state}", phase="weights", evidence=(Evidence("log", "silent for 9s"),)),
    )
    return replace(base, **changes)  # type: ignore[arg-type]
