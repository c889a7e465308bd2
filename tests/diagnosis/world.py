"""A made-up server, second by second, for the situations that no recording holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sgmon.analyse.store import Store
from sgmon.model import (
    Compiler,
    Event,
    FdTarget,
    Frame,
    Gpu,
    GpuProcess,
    GpuReading,
    Listener,
    LogReading,
    PortReading,
    Process,
    ProcsReading,
    Role,
    Server,
    ServerArgs,
    ServerReading,
    Shards,
    StackDump,
    StacksReading,
    TcpPeer,
    Thread,
    Verdict,
)
from tests.diagnosis.verdict_history import VerdictHistory

MB = 1_000_000
__all__ = ["MB", "Compiler", "FdTarget", "Rank", "Shards", "TcpPeer", "World"]


@dataclass
class Rank:
    """What one rank does from now on; rates are per second. Change the fields between ``run`` calls."""

    name: str
    pid: int
    role: Role = Role.WORKER
    state: str = "S"
    wchan: str | None = "futex_do_wait"
    cpu: float = 0.0
    wait: float = 0.0
    child_cpu: float = 0.0
    read: float = 0.0
    rchar: float = 0.0
    mapped: float = 0.0
    anon: float = 0.0
    util: int = 0
    power: float = 120.0
    wobble: float = 0.4
    gpu_bytes: int = 500 * MB
    gone: bool = False
    extra: dict[str, Any] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)

    def does(self, **what: Any) -> None:
        """Set fields of this class, or (the rest) of ``Process``."""
        for name, value in what.items():
            if hasattr(self, name):
                setattr(self, name, value)
            else:
                self.extra[name] = value

    # shorthands of what real ranks were measured to do
    def gloo_wait(self) -> None:
        self.does(state="S", wchan="futex_do_wait", cpu=0.01, rchar=0, read=0, mapped=0, anon=0, util=0)

    def store_wait(self) -> None:
        self.does(state="S", wchan="hrtimer_nanosleep", cpu=0.015, rchar=3500)

    def spin(self, watts: float = 122.0) -> None:
        self.does(state="R", wchan="0", cpu=1.0, util=100, power=watts, wobble=0.4, rchar=0, read=0, mapped=0, anon=0)

    def compute(self) -> None:
        self.does(state="R", wchan="0", cpu=1.0, rchar=0, read=0, mapped=0, anon=0)

    def idle(self) -> None:
        self.does(state="S", wchan="hrtimer_nanosleep", cpu=0.0, rchar=0, read=0, mapped=0, anon=0, util=0)


class World(VerdictHistory):
    """A launcher, its ranks, a log and a port, in front of the real Store."""

    def __init__(
        self, tp: int = 2, *, args: ServerArgs | None = None, gpu: bool = True, names: list[str] | None = None
    ):
        super().__init__()
        names = names if names is not None else [f"TP{i}" for i in range(tp)] if tp > 1 else [""]
        self.args = args or ServerArgs(tp=tp, model_path="/models/m")
        self.ranks = [Rank(name, 101 + i) for i, name in enumerate(names)]
        self.launcher = Rank("", 100, role=Role.LAUNCHER, wchan="poll_schedule_timeout")
        self.has_gpu, self.t, self.offset, self.lines = gpu, 0.0, 0, 0
        self.host: dict[str, Any] = {"read_ahead_bytes": 128 * 1024, "oom_kills": 0}
        self.age_s: float | None = None  # of what is logged: None: written now
        self.store = Store(0.0)
        self.port: PortReading | None = PortReading("127.0.0.1", self.args.port, "refused")
        server = Server(
            100,
            1,
            args=self.args,
            args_source="command line",
            version="0.5.17",
            log_path="/tmp/server.log",
            log_kind="file",
        )
        self.step(Event(0.0, "server", ServerReading(server)))

    def __getitem__(self, name: str | int) -> Rank:
        return self.ranks[name] if isinstance(name, int) else next(r for r in self.ranks if r.name == name)

    @property
    def verdict(self) -> Verdict:
        return self.store.snapshot.verdict

    def step(self, event: Event) -> None:
        self.note(self.store.step(event))

    def raw(self, text: str) -> None:
        """Text of the log as it is."""
        size = self.offset + len(text)
        self.step(
            Event(self.t, "log", LogReading("/tmp/server.log", "8:1", self.offset, text, size, age_s=self.age_s))
        )
        self.offset = size

    def log(self, *lines: str) -> None:
        """Lines in SGLang's words; "TP1: text" gets the prefix of that rank."""
        text = ""
        for line in lines:
            rank, colon, words = line.partition(": ")
            if colon and any(r.name == rank for r in self.ranks) and rank:
                text += f"[2026-11-29 15:00:00 {rank}] {words}\n"
            else:
                text += f"[2026-11-29 15:00:00] {line}\n"
        self.raw(text)

    def everywhere(self, words: str) -> None:
        self.log(*(f"{r.name}: {words}" if r.name else words for r in self.ranks))

    def to(self, phase: str) -> World:
        """Log what a healthy start prints up to a phase."""
        order = ["dist_init", "weights", "kv_cache", "graphs", "http", "warmup", "ready"]
        words = {
            "dist_init": "Init torch distributed begin.",
            "weights": "Load weight begin. avail mem=130.00 GB",
            "kv_cache": "Load weight end. elapsed=8.00 s, type=LlamaForCausalLM, avail mem=100.00 GB, mem usage=16.00 GB.",
            "graphs": "Capture cuda graph begin. This can take up to several minutes. avail mem=20.00 GB",
        }
        for name in order[: order.index(phase) + 1]:
            if name in words:
                self.everywhere(words[name])
            if name == "http":
                self.log("INFO:     Started server process [100]", "INFO:     Waiting for application startup.")
            if name == "warmup":
                self.log("INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)")
            if name == "ready":
                self.log("The server is fired up and ready to roll!")
        return self

    def run(self, seconds: float) -> World:
        """Let time pass, one reading of everything a second."""
        end = self.t + seconds
        while self.t + 1 <= end:
            self.t += 1.0
            self.step(Event(self.t, "procs", self._procs()))
            if self.has_gpu:
                self.step(Event(self.t, "gpu", self._gpus()))
            if self.port is not None and int(self.t) % 2 == 0:
                self.step(Event(self.t, "port", self.port))
            self.step(Event(self.t + 0.5, "tick"))
        return self

    def look(self, after_s: float) -> World:
        """One reading of the processes alone."""
        self.t += after_s
        self.step(Event(self.t, "procs", self._procs()))
        return self

    def answers(self, status: int | None, *, answer: str = "http", ours: bool | None = True, name: str = "") -> None:
        pid = 100 if ours else 4242
        who = (Listener(f"127.0.0.1:{self.args.port}", pid, ours, name),)
        self.port = PortReading("127.0.0.1", self.args.port, answer, status, 1.0, "/health", who)

    def dump(self, rank: str | int, *functions: str, samples: int = 3) -> None:
        """Stacks of one rank, innermost first: "function@file"."""
        frames = tuple(Frame(f.partition("@")[0], f.partition("@")[2], 10) for f in functions)
        target = self[rank]
        dumps = tuple(
            StackDump(
                target.pid,
                target.name,
                target.role,
                self.t,
                threads=(Thread(target.pid, "MainThread", frames=frames),),
                sample=i,
            )
            for i in range(samples)
        )
        self.step(Event(self.t, "stacks", StacksReading(1, "auto: suspect", dumps)))

    def _procs(self) -> ProcsReading:
        return ProcsReading(tuple(self._process(r) for r in [self.launcher, *self.ranks]), uid=0, **self.host)

    def _process(self, rank: Rank) -> Process:
        totals = rank.totals
        for name in ("cpu", "wait", "child_cpu", "read", "rchar", "mapped", "anon"):
            totals[name] = totals.get(name, 1e6) + getattr(rank, name)
        importing = rank.role == "importing"
        fields: dict[str, Any] = {
            "pid": rank.pid,
            "ppid": 1 if rank is self.launcher else 100,
            "start_ticks": rank.pid,
            "role": rank.role,
            "rank": rank.name,
            "rank_inferred": importing,
            "title": f"sglang::scheduler_{rank.name}" if rank.role == Role.WORKER else rank.role,
            "state": rank.state,
            "threads": 60,
            "cpu_s": totals["cpu"],
            "wait_s": totals["wait"],
            "tree_cpu_s": totals["child_cpu"],
            "rss_anon_bytes": round(totals["anon"]),
            "rss_file_bytes": round(totals["mapped"]),
            "read_bytes": round(totals["read"]),
            "rchar_bytes": round(totals["rchar"]),
            "wchan": rank.wchan,
            "gone": rank.gone,
        }
        return Process(**{**fields, **rank.extra})

    def _gpus(self) -> GpuReading:
        return GpuReading(
            tuple(
                Gpu(
                    i,
                    "NVIDIA H200",
                    total_bytes=140_000 * MB,
                    used_bytes=r.gpu_bytes,
                    util_percent=r.util,
                    power_w=r.power + (r.wobble if int(self.t) % 2 else 0.0),
                    processes=(GpuProcess(r.pid, r.gpu_bytes),) if r.role == Role.WORKER and not r.gone else (),
                )
                for i, r in enumerate(self.ranks)
            ),
            source="NVML",
        )
