"""A fake engine and hand-made snapshots in the shapes that a real server gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from sgmon.analyse.log.index import LogIndex
from sgmon.analyse.ranks.make import with_ranks
from sgmon.analyse.stacks.requests import with_reading
from sgmon.model import (
    ActivityClock,
    Bar,
    BlockedCall,
    Candidate,
    Compiler,
    Evidence,
    FdTarget,
    Frame,
    Gpu,
    GpuProcess,
    GpuReading,
    Listener,
    LogLine,
    LogReading,
    LogState,
    Mark,
    Milestone,
    Missing,
    NextStep,
    PortReading,
    ProbeStatus,
    Process,
    ProcsReading,
    RankProgress,
    Role,
    Series,
    Server,
    ServerArgs,
    Shards,
    Snapshot,
    StackDump,
    StacksReading,
    TcpPeer,
    Thread,
    Verdict,
    VerdictChange,
)

GIB = 1024**3
EPOCH = 1_796_000_000.0
LOG_PATH = "/data/logs/sglang-30000.log"


@dataclass
class FakeEngine:
    """The engine's outside, driven by hand: ``give`` publishes a snapshot."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    log_text: LogIndex = field(default_factory=lambda: LogIndex())
    first_request: int = 1  # the number that the next request gets
    requests: list[tuple[tuple[int, ...] | None, int, bool, str]] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)
    started: bool = False
    stopped: bool = False
    failure: str = ""
    subscribers: list[Callable[[Snapshot], None]] = field(default_factory=list)

    def start(self) -> None:
        self.started = True

    def stop(self) -> None:
        self.stopped = True

    def subscribe(self, subscriber: Callable[[Snapshot], None]) -> None:
        self.subscribers.append(subscriber)

    def request_stacks(
        self, pids: Sequence[int] | None = None, samples: int = 1, native: bool = False, why: str = ""
    ) -> int | None:
        self.requests.append((None if pids is None else tuple(pids), samples, native, why))
        return None if self.snapshot.replay else self.first_request + len(self.requests) - 1

    def save_flight(self) -> bool:
        return False

    def choose(self, pid: int) -> None:
        self.chosen.append(pid)

    def give(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        for subscriber in self.subscribers:
            subscriber(snapshot)


def log_of(path: Path, rows: Sequence[str]) -> LogIndex:
    """The text behind the log panel, from rows written to ``path``."""
    path.write_text("".join(row + "\n" for row in rows), encoding="utf-8")
    index = LogIndex()
    stat = path.stat()
    index.follow(LogReading(str(path), f"{stat.st_dev}:{stat.st_ino}", 0, "", stat.st_size))
    return index


def log_rows(shards: int = 64) -> list[str]:
    rows = [
        "[2026-11-29 12:00:01] server_args=ServerArgs(model_path='/models/Qwen3-235B-A22B', tp_size=8, port=30000)"
    ]
    for words in (
        "Init torch distributed begin.",
        "sglang is using nccl==2.27.5",
        "Init torch distributed ends. elapsed=6.2 s, mem usage=0.9 GB",
        "Load weight begin. avail mem=78.12 GB",
    ):
        rows += [f"[2026-11-29 12:00:2{i % 10} TP{i}] {words}" for i in range(8)]
    rows += [
        f"Loading safetensors checkpoint shards: {n * 100 // 64:>3}% Completed | {n}/64 [0{n // 8}:{n % 8 * 7:02d}<03:20,  7.7s/it]"
        for n in range(1, shards + 1)
    ]
    return rows


def server(tp: int = 8, **args: object) -> Server:
    return Server(
        pid=4711,
        start_ticks=100,
        started_epoch=EPOCH - 40,
        argv=("python", "-m", "sglang.launch_server", "--model-path", "/models/Qwen3-235B-A22B", "--tp", str(tp)),
        args=ServerArgs(model_path="/models/Qwen3-235B-A22B", tp=tp, port=30000, **args),  # type: ignore[arg-type]
        args_source="command line",
        version="0.5.23",
        log_path=LOG_PATH,
        log_kind="file",
        log_source="fd 1 and 2 of pid 4711",
    )


def process(rank: int, **changes: object) -> Process:
    base = Process(
        pid=4800 + rank,
        ppid=4711,
        start_ticks=200 + rank,
        role=Role.WORKER,
        rank=f"TP{rank}",
        title=f"sglang::scheduler_TP{rank}",
        comm="sglang::schedul",
        state="S",
        threads=148,
        thread_states=(("S", 147), ("R", 1)),
        cpu_s=412.0,
        rss_anon_bytes=9 * GIB,
        rss_file_bytes=2 * GIB,
        read_bytes=58 * GIB,
        wchan="futex_do_wait",
        call=BlockedCall(202, "futex"),
        stdio=("/dev/null", LOG_PATH, LOG_PATH),
        same_log=True,
        fds=(
            FdTarget(1, LOG_PATH),
            FdTarget(2, LOG_PATH),
            FdTarget(41, "socket:[91]", "ESTAB 127.0.0.1:43452 -> 127.0.0.1:52553"),
        ),
        fd_count=212,
        shards=Shards(("model-00058-of-00064.safetensors",), 4 * GIB, "/models", "nfs4"),
        tcp=(TcpPeer("127.0.0.1:43452", "127.0.0.1:52553", "ESTAB", peer_pid=4800),),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def launcher(**changes: object) -> Process:
    base = Process(
        pid=4711,
        ppid=1,
        start_ticks=100,
        role=Role.LAUNCHER,
        title="python -m sglang.launch_server",
        state="S",
        threads=22,
        rss_anon_bytes=2 * GIB,
        wchan="do_poll",
        call=BlockedCall(7, "poll", timeout_ms=5000),
        stdio=("/dev/null", LOG_PATH, LOG_PATH),
        same_log=True,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def detokenizer(**changes: object) -> Process:
    base = replace(launcher(), pid=4900, role=Role.DETOKENIZER, title="sglang::detokenizer", rss_anon_bytes=GIB)
    return replace(base, **changes)  # type: ignore[arg-type]


def clock(pid: int, rank: str, signal: str, t: float, cpu: float = 3.0, read: float | None = 0.0) -> ActivityClock:
    return ActivityClock(
        pid=pid,
        rank=rank,
        role=Role.WORKER,
        since_t=0.0,
        marks=(Mark(signal, t, signal),),
        read_rate=read,
        cpu_percent=cpu,
    )


def gpu(index: int, used_gib: float = 76.1, util: int = 0, power: float = 118.0, **changes: object) -> Gpu:
    base = Gpu(
        index=index,
        name="NVIDIA H100 80GB HBM3",
        total_bytes=int(79.6 * GIB),
        used_bytes=int(used_gib * GIB),
        util_percent=util,
        power_w=power,
        power_limit_w=700,
        temperature_c=34 + index,
        processes=(GpuProcess(4800 + index, int(used_gib * GIB), f"TP{index}"),),
        ranks=(f"TP{index}",),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def history(t: float, tp: int = 8, top_gib: float = 76.1, full_at: float = 60.0) -> tuple[Series, ...]:
    series = []
    for index in range(tp):
        used = tuple(
            (float(s), min(1.0, s / full_at) * top_gib * GIB if s % 37 else None)
            for s in range(int(max(0, t - 200)), int(t))
        )
        util = tuple((float(s), 12.0 + (s * 7 + index * 13) % 60 if s < full_at else 0.0) for s, _ in used)
        series += [Series(f"gpu{index}.used", used), Series(f"gpu{index}.util", util)]
    return tuple(series)


def ranks(tp: int, milestone: str, phase: str, line: int, at: float) -> tuple[RankProgress, ...]:
    event = "end" if milestone.endswith("_end") else "begin"
    return tuple(RankProgress(f"TP{i}", milestone, line + i, phase, EPOCH + at, at, event) for i in range(tp))


def milestones(tp: int, upto: int) -> tuple[Milestone, ...]:
    """The first ``upto`` steps of a usual start, one line per rank."""
    steps = (
        ("args", "info", "launch", -30.0),
        ("process_spawn", "info", "spawn", -20.0),
        ("dist_init_begin", "begin", "dist_init", 2.0),
        ("dist_init_end", "end", "dist_init", 8.0),
        ("load_begin", "begin", "weights", 9.0),
        ("weights_100", "progress", "weights", 480.0),
        ("load_end", "end", "weights", 482.0),
        ("kv_alloc", "info", "kv_cache", 484.0),
        ("graph_begin", "begin", "graphs", 490.0),
        ("graph_end", "end", "graphs", 530.0),
        ("scheduler_ready", "end", "scheduler_ready", 531.0),
        ("http_up", "info", "http", 533.0),
        ("warmup_request", "begin", "warmup", 534.0),
        ("ready", "end", "ready", 541.0),
    )
    everywhere = ("launch", "spawn", "http", "warmup", "ready")
    return tuple(
        Milestone(name, event, phase, 10 * number + 1, rank, EPOCH + at, at)
        for number, (name, event, phase, at) in enumerate(steps[:upto])
        for rank in ([""] if phase in everywhere else [f"TP{i}" for i in range(tp)])
    )


REFUSED = PortReading("127.0.0.1", 30000, "refused", latency_s=0.0004)
OK_PROBES = ("server", "procs", "gpu", "log", "port")


def probes(t: float) -> tuple[ProbeStatus, ...]:
    return tuple(ProbeStatus(name, last_ok_t=t - 0.4, took_s=0.02) for name in OK_PROBES)


def _with_ranks(make: Callable[..., Snapshot]) -> Callable[..., Snapshot]:
    """The snapshot with the ranks that the store makes of it."""
    return lambda *args, **options: with_ranks(make(*args, **options))


LOOKED_FOR = (
    "python -m sglang.launch_server, sglang serve, or a process titled sglang::http_server, among 79 processes"
)


@_with_ranks
def waiting(t: float = 12.0) -> Snapshot:
    return Snapshot(
        t=t,
        epoch=EPOCH,
        looked_for=LOOKED_FOR,
        verdict=Verdict(
            "waiting",
            "no SGLang or vLLM server yet",
            since_t=0.0,
            evidence=(Evidence("proc", f"looked for {LOOKED_FOR}"),),
        ),
        probes=(ProbeStatus("server", last_ok_t=t - 0.5),),
        gpu=GpuReading(tuple(gpu(i, 0.6, 0, 71, ranks=(), processes=()) for i in range(8)), "550.90", "NVML"),
    )


@_with_ranks
def importing(t: float = 20.0, tp: int = 8) -> Snapshot:
    """Children exist, still untitled, no log line of theirs yet."""
    processes = [launcher()] + [
        process(
            i,
            role=Role.IMPORTING,
            rank_inferred=True,
            state="R",
            title="",
            call=None,
            wchan=None,
            shards=None,
            rss_anon_bytes=GIB // 2,
        )
        for i in range(tp)
    ]
    return Snapshot(
        t=t,
        epoch=EPOCH,
        server=server(tp),
        server_seen_t=0.0,
        procs=ProcsReading(tuple(processes)),
        gpu=GpuReading(tuple(gpu(i, 0.6, 0, 71, ranks_inferred=True) for i in range(tp)), "550.90", "NVML"),
        log=LogState(
            path=LOG_PATH,
            kind="file",
            size=18_000,
            lines=9,
            phase="spawn",
            milestones=milestones(tp, 2),
            last_byte_t=2.0,
        ),
        port=REFUSED,
        port_changed_t=1.0,
        clocks=tuple(clock(4800 + i, f"TP{i}", "memory", t - 0.5, cpu=99.0) for i in range(tp)),
        probes=probes(t),
        verdict=Verdict(
            "progressing",
            "8 scheduler processes are importing Python modules (usual: 9-24 s without a log line)",
            "spawn",
            since_t=4.0,
            confidence=0.9,
            evidence=(
                Evidence("proc", "CPU time of all 8 rises, 99 % of a core each"),
                Evidence("log", "silent for 18s: normal, the children have not set up logging yet"),
            ),
            next=(NextStep("wait; look again in half a minute"),),
        ),
        verdicts=(VerdictChange(0.0, "waiting", "no server"), VerdictChange(1.0, "progressing", "launch")),
    )


@_with_ranks
def loading(t: float = 300.0, tp: int = 8, done: int = 38) -> Snapshot:
    """A healthy TP8 load from a slow disk."""
    processes = [launcher()]
    processes += [
        process(
            i,
            state="D" if i % 2 else "R",
            wchan="folio_wait_bit_common",
            call=BlockedCall(0, "read", 77, f"/models/Qwen3-235B-A22B/model-000{done}-of-00064.safetensors"),
        )
        for i in range(tp)
    ]
    processes += [detokenizer(), replace(detokenizer(), pid=4901, role=Role.RESOURCE_TRACKER)]
    return Snapshot(
        t=t,
        epoch=EPOCH,
        server=server(tp),
        server_seen_t=0.0,
        procs=ProcsReading(tuple(processes), uid=1000),
        gpu=GpuReading(tuple(gpu(i, 45.2 + i / 10, 3, 131) for i in range(tp)), "550.90", "NVML"),
        log=LogState(
            path=LOG_PATH,
            kind="file",
            size=41_000,
            lines=198,
            version="0.5.23",
            phase="weights",
            milestones=milestones(tp, 5),
            ranks=ranks(tp, "load_begin", "weights", 100, 9.0),
            bars=(Bar("weights_progress", done, 64, 190, rank="TP0", moved_t=t - 3, seen_t=t - 3),),
            last_byte_t=t - 3,
            last_line=LogLine(
                198,
                f"Loading safetensors checkpoint shards:  59% Completed | {done}/64 [05:01<03:20,  7.7s/it]",
                kind="bar",
            ),
        ),
        port=REFUSED,
        port_changed_t=1.0,
        clocks=(
            *(clock(4800 + i, f"TP{i}", "bytes", t - 1, cpu=31.0 + i, read=520 * 1024**2) for i in range(tp)),
            clock(4711, "", "cpu", t - 4, cpu=0.4, read=0.0),
            clock(4900, "", "cpu", t - 4, cpu=0.2, read=0.0),
        ),
        series=history(t, tp, 45.2, full_at=t),
        probes=probes(t),
        verdict=Verdict(
            "progressing",
            f"loading weights: shard {done} of 64, all {tp} ranks read about 520 MiB/s",
            "weights",
            since_t=9.0,
            confidence=0.95,
            evidence=(
                Evidence("log", "the bar moved 3s ago; 7.7 s per shard, about 3m20s to go"),
                Evidence("proc", "all 8 ranks read from nfs4 /models, 520 MiB/s each"),
                Evidence("gpu", "memory grows on all 8 GPUs: 45.2 GiB of 79.6"),
            ),
            next=(NextStep("wait: nothing is wrong", "sgmon wait --timeout 30m"),),
        ),
        verdicts=(
            VerdictChange(0.0, "waiting", "no server"),
            VerdictChange(1.0, "progressing", "importing"),
            VerdictChange(9.0, "progressing", "loading weights"),
        ),
    )


@_with_ranks
def stuck(t: float = 992.0, tp: int = 8, bad: int = 3) -> Snapshot:
    """The seed incident: 64/64, then silence; TP3 never reached the collective that the others wait in."""
    processes = [launcher()]
    processes += [
        process(i, state="S", shards=None)
        if i != bad
        else process(
            i,
            state="D",
            wchan="rpc_wait_bit_killable",
            call=BlockedCall(0, "read", 77, "/models/Qwen3-235B-A22B/model-00064-of-00064.safetensors"),
        )
        for i in range(tp)
    ]
    processes.append(detokenizer())
    log = loading(t, tp).log
    return replace(
        loading(t, tp),
        procs=ProcsReading(tuple(processes), uid=1000),
        gpu=GpuReading(tuple(gpu(i, 76.0 + i / 10, 0, 118) for i in range(tp)), "550.90", "NVML"),
        log=replace(
            log,
            lines=217,
            milestones=milestones(tp, 6),
            ranks=tuple(
                RankProgress(
                    f"TP{i}",
                    "load_begin" if i == bad else "load_end",
                    217,
                    "weights",
                    EPOCH + (9 if i == bad else 482),
                    9 if i == bad else 482,
                    "begin" if i == bad else "end",
                )
                for i in range(tp)
            ),
            bars=(Bar("weights_progress", 64, 64, 217, rank="TP0", moved_t=480.0, seen_t=480.0, finished=True),),
            last_byte_t=482.0,
            last_line=LogLine(
                217,
                "Loading safetensors checkpoint shards: 100% Completed | 64/64 [08:01<00:00,  7.5s/it]",
                kind="bar",
            ),
        ),
        clocks=tuple(
            clock(4800 + i, f"TP{i}", "bytes" if i == bad else "log", 481.0 + i / 2, cpu=0.0 if i == bad else 2.0)
            for i in range(tp)
        ),
        series=history(t, tp, 76.1, full_at=480.0),
        verdict=Verdict(
            "stalled",
            "TP3 is blocked reading its last weight file from NFS; 7 ranks wait for it",
            "weights",
            since_t=512.0,
            confidence=0.9,
            rule="collective_waits_for_one",
            odd_ranks=(f"TP{bad}",),
            evidence=(
                Evidence(
                    "proc",
                    "in state D in read(model-00064-of-00064.safetensors), wchan rpc_wait_bit_killable, for 8m20s",
                    f"TP{bad}",
                    4800 + bad,
                ),
                Evidence("stacks", "TP0-2,4-7 stand in dist_barrier_after_load, TP3 in safetensors.get_tensor"),
                Evidence(
                    "log",
                    "100% Completed 64/64 at line 217, nothing since 8m30s; the file is complete, nothing is held back",
                ),
                Evidence("gpu", "memory flat at 76 GiB, utilisation 0 % on all 8"),
                Evidence("port", "30000 is closed: it opens last, so this alone says nothing"),
            ),
            missing=(Missing("kernel", "/proc/PID/stack is not readable", "run sgmon as root"),),
            next=(
                NextStep("check the NFS mount behind /models on this node", "stat -f /models; dmesg | grep -i nfs"),
                NextStep("look at the stack of TP3: press d", "py-spy dump --nonblocking --pid 4803"),
            ),
        ),
        verdicts=(
            VerdictChange(0.0, "waiting", "no server"),
            VerdictChange(1.0, "progressing", "importing"),
            VerdictChange(9.0, "progressing", "loading weights"),
            VerdictChange(497.0, "suspect", "silent after 64/64"),
            VerdictChange(512.0, "stalled", "TP3 is blocked"),
        ),
    )


@_with_ranks
def compiling(t: float = 80.0) -> Snapshot:
    base = loading(t, 2, 0)
    busy = process(
        0,
        wchan="anon_pipe_read",
        compilers=(Compiler(5001, "ninja"), Compiler(5002, "cicc", "norm.cu", 31.0)),
        shards=None,
    )
    return replace(
        base,
        procs=ProcsReading(
            (
                launcher(),
                busy,
                process(
                    1,
                    wchan="hrtimer_nanosleep",
                    call=BlockedCall(35, "clock_nanosleep"),
                    waits_for_lock="/root/.cache/flashinfer/norm.lock",
                    lock_holder=4800,
                ),
            )
        ),
        gpu=GpuReading(
            tuple(gpu(i, 127.7, 0, 122, name="NVIDIA H200", total_bytes=141 * GIB) for i in range(2)),
            "550.90",
            "NVML",
        ),
        verdict=Verdict(
            "progressing",
            "TP0 compiles kernels (ninja, cicc norm.cu); TP1 waits for its lock",
            "graphs",
            since_t=40.0,
            confidence=0.9,
            evidence=(Evidence("proc", "compilers under TP0 have used 31 s of CPU"),),
            next=(NextStep("wait: 33-38 s are usual the first time"),),
        ),
    )


@_with_ranks
def crashed(t: float = 610.0) -> Snapshot:
    base = stuck(t)
    gone = process(
        3,
        state="Z",
        gone=True,
        exit_code=None,
        exit_signal=9,
        exit_source="killed by SIGKILL (OOM killer, cgroup memory.events)",
    )
    others = tuple(p for p in base.procs.processes if p.rank != "TP3")
    return replace(
        base,
        procs=ProcsReading((*others, gone)),
        verdict=Verdict(
            "crashed",
            "TP3 was killed by the kernel's OOM killer while loading weights",
            "weights",
            since_t=605.0,
            confidence=0.97,
            odd_ranks=("TP3",),
            evidence=(
                Evidence("proc", "pid 4803 ended by signal 9; oom_kills of the cgroup rose from 0 to 1", "TP3", 4803),
                Evidence("log", "line 218: Rank 3 scheduler died during initialization (exit code: -9)"),
            ),
            next=(
                NextStep(
                    "give the container more memory, or load with fewer threads", "sgmon report -o incident.tar.gz"
                ),
            ),
        ),
    )


@_with_ranks
def ready(t: float = 600.0) -> Snapshot:
    base = loading(t)
    return replace(
        base,
        log=replace(
            base.log,
            phase="ready",
            ready_line=641,
            http_up_line=630,
            lines=641,
            milestones=milestones(8, 14),
            ranks=ranks(8, "scheduler_ready", "scheduler_ready", 600, 531.0),
            bars=(),
        ),
        port=PortReading(
            "127.0.0.1", 30000, "http", 200, 1.002, "/health", (Listener("127.0.0.1:30000", 4711, True, "python"),)
        ),
        port_changed_t=541.0,
        verdict=Verdict(
            "ready",
            "serving on 127.0.0.1:30000 after 9m41s",
            "ready",
            since_t=541.0,
            confidence=0.99,
            evidence=(
                Evidence("port", "/health 200 in 1.0s, the socket is the launcher's"),
                Evidence("log", "ready at line 641"),
            ),
        ),
    )


@_with_ranks
def no_nvml(t: float = 300.0) -> Snapshot:
    return replace(
        loading(t),
        gpu=GpuReading(
            unavailable="libnvidia-ml.so.1 was not found on this machine",
            remedy="start the container with --gpus all, or run sgmon on the host",
        ),
        series=(),
    )


@_with_ranks
def hung_probe(t: float = 300.0) -> Snapshot:
    base = loading(t)
    return replace(
        base,
        probes=(
            *(p for p in base.probes if p.name != "gpu"),
            ProbeStatus("gpu", last_ok_t=t - 13, in_flight_since_t=t - 12),
        ),
    )


@_with_ranks
def two_servers(t: float = 300.0) -> Snapshot:
    return replace(
        loading(t),
        candidates=(
            Candidate(
                4711, 100, "python -m sglang.launch_server --tp 8", 30000, "/models/Qwen3-235B-A22B", EPOCH - 40
            ),
            Candidate(9911, 200, "sglang serve", 31000, "/models/llama-8b", EPOCH - 4000),
        ),
    )


HOSTILE = "[/] [bold red]x[/bold red] \x1b[31mred\x1b[0m \x1b]0;title\x07 宽字符ｗｉｄｅ \u202eabc\u202c array[int] [@click=app.quit]"


@_with_ranks
def hostile(t: float = 300.0) -> Snapshot:
    """Every foreign string is one that breaks a careless screen."""
    base = stuck(t)
    return replace(
        base,
        server=replace(
            base.server,
            log_path=HOSTILE,
            version=HOSTILE,
            args=replace(base.server.args, model_path=HOSTILE, host=HOSTILE),
        ),  # type: ignore[union-attr, type-var]
        procs=ProcsReading(
            tuple(
                replace(p, title=HOSTILE, wchan=HOSTILE, call=BlockedCall(0, "read", 3, HOSTILE), exit_source=HOSTILE)
                for p in base.procs.processes
            )
        ),
        gpu=replace(base.gpu, gpus=tuple(replace(g, name=HOSTILE) for g in base.gpu.gpus)),
        port=PortReading(HOSTILE, 30000, "refused", listeners=(Listener(HOSTILE, 1, False, HOSTILE),), note=HOSTILE),
        verdict=replace(
            base.verdict, headline=HOSTILE, evidence=(Evidence("log", HOSTILE),), next=(NextStep(HOSTILE, HOSTILE),)
        ),
        looked_for=HOSTILE,
    )


def frames(*names: str) -> tuple[Frame, ...]:
    out = []
    for name in names:
        function, _, where = name.partition("@")
        file, _, line = where.partition(":")
        out.append(Frame(function, file, int(line) if line else None))
    return tuple(out)


BARRIER = frames(
    "wait@threading.py:355",
    "_barrier@torch/distributed/distributed_c10d.py:4816",
    "monitored_barrier@torch/distributed/distributed_c10d.py:5012",
    "dist_barrier_after_load@sglang/srt/model_loader/loader.py:712",
    "load_model@sglang/srt/model_executor/model_runner.py:1022",
    "__init__@sglang/srt/model_executor/model_runner.py:431",
    "__init__@sglang/srt/managers/tp_worker.py:241",
    "__init__@sglang/srt/managers/scheduler.py:488",
    "run_scheduler_process@sglang/srt/managers/scheduler.py:3120",
    "run@multiprocessing/process.py:108",
    "_bootstrap@multiprocessing/process.py:314",
)
READING = frames(
    "get_tensor@safetensors/__init__.py:77",
    "safetensors_weights_iterator@sglang/srt/model_loader/weight_utils.py:689",
    "load_weights@sglang/srt/models/qwen3_moe.py:901",
    "load_model@sglang/srt/model_executor/model_runner.py:1010",
    *[f"{f.function}@{f.file}:{f.line}" for f in BARRIER[5:]],
)


def dump(rank: int, stack: tuple[Frame, ...], t: float) -> StackDump:
    threads = (
        Thread(4800 + rank, "MainThread", True, False, stack),
        Thread(
            5800,
            "Thread-1 (_read_thread)",
            False,
            False,
            frames("_recv_msg@torch/_inductor/compile_worker/subproc_pool.py:57", "run@threading.py:1012"),
        ),
        Thread(
            5801, "watchdog", False, False, frames("wait@threading.py:359", "sleep@sglang/srt/utils/watchdog.py:44")
        ),
    )
    return StackDump(
        pid=4800 + rank, rank=f"TP{rank}", role=Role.WORKER, t=t, took_s=0.03, threads=threads,
        command=f"py-spy dump --nonblocking --json --pid {4800 + rank}",
    )  # fmt: skip


@_with_ranks
def with_stacks(request: int = 1, why: str = "key D", t: float = 995.0, refused: bool = False) -> Snapshot:
    """The stuck server with all ranks dumped."""
    dumps = tuple(dump(i, READING if i == 3 else BARRIER, t - 1) for i in range(8))
    if refused:
        dumps = tuple(
            replace(
                d,
                threads=(),
                error="not permitted to read the memory of this process",
                missing=(
                    Missing(
                        "stacks",
                        "ptrace_scope is 1 and sgmon is not its parent",
                        "sudo sysctl kernel.yama.ptrace_scope=0",
                    ),
                ),
            )
            for d in dumps
        )
    return with_reading(stuck(t), StacksReading(request, why, dumps))
