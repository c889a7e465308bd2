"""Turn raw records of real starts (0.5 s samples of /proc and NVML) into sgmon recordings.

    python -m tests.diagnosis.convert SOURCE TARGET [--step 1.0]

SOURCE is a folder of one run: ``timeline.jsonl.gz`` (CPU runs) or ``samples.jsonl.gz`` (GPU runs) beside
``loglines.jsonl[.gz]``, ``health.jsonl`` or ``http.jsonl``, ``events.jsonl`` and ``cmd.txt``. What the raw
records do not have (run-queue wait, RSS split of CPU runs, TCP rows, exit status of most) stays None.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from sgmon.discovery.process_roles import role_of, what_it_builds
from sgmon.model import (
    Compiler,
    Event,
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
)
from sgmon.servers.sglang import FAMILY, titles
from sgmon.servers.sglang import args as arguments
from sgmon.servers.sglang.server_args import from_mapping
from tests.diagnosis.raw_records import ANSWERS, TICKS, argv_of, call_of, lines, log_events, neutral, record

KEPT = {"resource_tracker", "launcher", Role.WORKER, "importing", "detokenizer", Role.CONTROLLER}


class Run:
    """One raw run, CPU or GPU kind, read into events."""

    def __init__(self, source: Path, step: float) -> None:
        self.source, self.step = source, step
        self.gpu_kind = (source / "samples.jsonl.gz").exists()
        self.events = list(lines(source / "events.jsonl"))
        if self.gpu_kind:
            start = next(e for e in self.events if "launch" in e)
            self.argv, self.pid, self.epoch = tuple(start["cmd"]), start["pid"], None
            self.log_path = f"/var/log/sglang/{source.name}/server.log"
            self.samples = [self._gpu_sample(s) for s in lines(source / "samples.jsonl.gz")]
        else:
            start = json.loads((source / "cmd.txt").read_text())
            self.pid, self.epoch = start["pid"], start["t0"]
            self.log_path = f"/var/log/sglang/{source.name}/server.log"
            self.samples = list(lines(source / "timeline.jsonl.gz"))
            first = next(p for s in self.samples for p in s["procs"] if p["pid"] == self.pid)
            self.argv = tuple(first["cmdline"].split())
        self.args = from_mapping(arguments.parse(self.argv))
        listed = [str(w) for w in json.loads((source / "cmd.txt").read_text())["cmd"]] if not self.gpu_kind else []
        if "--port" in listed:
            self.args = replace(self.args, port=int(listed[listed.index("--port") + 1]))
        self.whole_log = (source / "server.log").read_text(encoding="utf-8", errors="replace")
        self.deep: dict[int, dict] = {}
        self.known: dict[int, Process] = {}

    def _gpu_sample(self, raw: dict) -> dict:
        if self.epoch is None:
            self.epoch = raw["wall"] - raw["t"]
        names = {"main": "launcher"}
        procs = []
        for p in raw["procs"]:
            title = p["role"] if p["role"].startswith("sglang::") else p.get("cmd", p["role"])
            if p["role"] == "spawn(untitled)":
                title = "python3 -c from multiprocessing.spawn import spawn_main"
            io = p["io"] if isinstance(p.get("io"), dict) else {}
            procs.append(
                {
                    "pid": p["pid"],
                    "ppid": p["ppid"],
                    "comm": p["comm"],
                    "cmdline": title,
                    "role": names.get(p["role"]),
                    "state": p["st"],
                    "utime": p["ut"],
                    "stime": p["stt"],
                    "start": p["start"],
                    "threads": p["thr"],
                    "majflt": p["majflt"],
                    "wchan": p["wchan"],
                    "syscall": p["syscall"],
                    "read_bytes": io.get("read_bytes"),
                    "rchar": io.get("rchar"),
                    "write_bytes": io.get("write_bytes"),
                    "status": p.get("status"),
                    "mapped_st": p.get("st_maps"),
                    "listen": p.get("listen"),
                    "compile": p["role"].startswith("compile:"),
                }
            )
        return {"t": raw["t"], "procs": procs, "gpu": raw["gpu"]}

    def all_events(self) -> list[Event]:
        found = [*self._procs(), *log_events(self._log(), self.log_path), *self._port()]
        found.append(Event(0.0, "server", ServerReading(self._server())))
        return sorted(found, key=lambda e: (e.t, e.kind != "server"))

    def _server(self) -> Server:
        return Server(
            pid=self.pid,
            start_ticks=self.samples[0]["procs"][0].get("start", 1),
            argv=self.argv,
            args=self.args,
            args_source="command line",
            log_path=self.log_path,
            log_kind="file",
        )

    def _procs(self) -> Iterator[Event]:
        last = -10.0
        for sample in self.samples:
            if sample["t"] - last < self.step - 0.2:
                self._remember(sample)
                continue
            last = sample["t"]
            reading = self._reading(sample)
            yield Event(round(sample["t"], 2), "procs", reading)
            if self.gpu_kind:
                yield Event(round(sample["t"], 2) + 0.01, "gpu", _gpus(sample["gpu"]))
        if self.pid not in {p["pid"] for p in self.samples[-1]["procs"]}:
            yield Event(round(last + 2, 2), "server", ServerReading(None, gone_pid=self.pid))

    def _remember(self, sample: dict) -> None:
        for p in sample["procs"]:
            self._carry(p)

    def _carry(self, p: dict) -> dict:
        """Slow facts (RSS split, mapped shards, listening ports) come every 2 s in GPU runs: carry them on."""
        kept = self.deep.setdefault(p["pid"], {})
        for key in ("status", "mapped_st", "listen"):
            if p.get(key) is not None:
                kept[key] = p[key]
        return kept

    def _reading(self, sample: dict) -> ProcsReading:
        raw = {p["pid"]: p for p in sample["procs"]}
        roles = {pid: self._role(p) for pid, p in raw.items()}
        born = sorted(raw.values(), key=lambda p: (p["start"], p["pid"]))
        inferred = self._inferred(born, roles)
        processes = [self._process(p, roles, raw, inferred) for p in born if roles[p["pid"]] in KEPT]
        present = {p.pid for p in processes}
        for pid, old in list(self.known.items()):
            if pid not in present:
                processes.append(self._gone(old))
                del self.known[pid]
        for process in processes:
            if not process.gone:
                self.known[process.pid] = process
        return ProcsReading(processes=tuple(processes), uid=0, read_ahead_bytes=128 * 1024)

    def _inferred(self, born: list[dict], roles: dict[int, Role]) -> dict[int, str]:
        """Importing children by birth order: the schedulers of this node first, the rest has no rank."""
        names = [f"TP{i}" for i in range(self.args.tp // self.args.nnodes or 1)] if self.args.tp > 1 else [""]
        names = [f"DP{i}" for i in range(self.args.dp)] if self.args.dp > 1 else names
        parent = self.pid
        if self.args.dp > 1:
            parent = next((pid for pid, role in roles.items() if role == Role.CONTROLLER), -1)
        wanted = ("importing", Role.WORKER, "detokenizer")
        children = [p["pid"] for p in born if p["ppid"] == parent and roles[p["pid"]] in wanted]
        by_place = dict(zip(children, names, strict=False))
        return {pid: rank for pid, rank in by_place.items() if roles[pid] == "importing"}

    def _role(self, p: dict) -> Role:
        if p["pid"] == self.pid:
            return Role.LAUNCHER
        if p.get("compile"):
            return Role.COMPILER
        before = self.known.get(p["pid"])
        if p["state"] == "Z" and before is not None:
            return before.role
        return Role(p["role"]) if p.get("role") else role_of(argv_of(p["cmdline"]), FAMILY)

    def _process(self, p: dict, roles: dict[int, Role], raw: dict[int, dict], inferred: dict[int, str]) -> Process:
        pid, role = p["pid"], roles[p["pid"]]
        kept = self._carry(p)
        below = _descendants(pid, raw)
        helpers = [q for q in below if roles[q["pid"]] not in KEPT]
        status = kept.get("status") or {}
        anon, mapped = _kb(status.get("RssAnon")), _kb(status.get("RssFile"))
        if not self.gpu_kind:
            anon = round(p["rss_mb"] * 1e6)
        shards = tuple(sorted({Path(s).name for s in kept.get("mapped_st") or []}))
        rank = titles.rank_of(p["cmdline"]) if role == Role.WORKER else inferred.get(pid, "")
        before = self.known.get(pid)
        if p["state"] == "Z" and before is not None:
            rank = before.rank
        return Process(
            pid=pid,
            ppid=p["ppid"],
            start_ticks=p["start"],
            role=role,
            rank=rank,
            rank_inferred=pid in inferred,
            title=p["cmdline"].strip()[:60],
            comm=p["comm"],
            state=p["state"],
            threads=p["threads"],
            cpu_s=(p["utime"] + p["stime"]) / TICKS,
            tree_cpu_s=sum(q["utime"] + q["stime"] for q in helpers) / TICKS,
            rss_anon_bytes=anon,
            rss_file_bytes=mapped,
            read_bytes=p.get("read_bytes"),
            rchar_bytes=p.get("rchar"),
            write_bytes=p.get("write_bytes"),
            majflt=p.get("majflt"),
            wchan=p.get("wchan"),
            call=call_of(p.get("syscall") or ""),
            tracer_pid=int(status["TracerPid"]) or None if p["state"] == "t" and "TracerPid" in status else None,
            shards=Shards(shards, 0, "/models", "ext4") if shards else None,
            compilers=tuple(
                Compiler(q["pid"], q["comm"], _what(q), (q["utime"] + q["stime"]) / TICKS)
                for q in helpers
                if roles[q["pid"]] == "compiler"
            ),
        )

    def _gone(self, old: Process) -> Process:
        code, signal = None, None
        if f" {old.pid} terminated with 0" in self.whole_log:
            code = 0
        elif old.pid == self.pid:
            code = _exit_code(self)
            code, signal = (None, -code) if code is not None and code < 0 else (code, None)
        elif any(e.get("do") == "kill" and e.get("pid") == old.pid for e in self.events) or any(
            e.get("action") == f"9 {old.pid}" for e in self.events
        ):
            signal = 9
        return Process(
            pid=old.pid,
            ppid=old.ppid,
            start_ticks=old.start_ticks,
            role=old.role,
            rank=old.rank,
            title=old.title,
            comm=old.comm,
            state="X",
            gone=True,
            exit_code=code,
            exit_signal=signal,
            exit_source="pidfd" if (code, signal) != (None, None) else "",
        )

    def _log(self) -> Iterator[tuple[float, str]]:
        for line in lines(self.source / ("loglines.jsonl.gz" if self.gpu_kind else "loglines.jsonl")):
            if line.get("e") == "part":
                continue
            words = line.get("l", line.get("line", ""))
            if "server_args=" in words:
                words = self._whole_line(words)
            bar = line.get("e") == "cr" or ("Completed |" in words and not self.gpu_kind)
            yield line["t"], words + ("\r" if bar else "\n")

    def _whole_line(self, cut: str) -> str:
        """The raw records cut long lines; the log itself has them whole."""
        with open(self.source / "server.log", encoding="utf-8", errors="replace") as file:
            whole = next((x.rstrip("\n") for x in file if x.startswith(cut[:60]) and "server_args=" in x), cut)
        return neutral(whole)

    def _port(self) -> Iterator[Event]:
        path = self.source / ("http.jsonl" if self.gpu_kind else "health.jsonl")
        ours_at = [(s["t"], self._listens(s)) for s in self.samples]
        ours_at = [(t, o) for t, o in ours_at if o is not None]
        last: tuple[float, object] = (-10.0, None)
        rows = (
            lines(path) if path.exists() else (s["health"] | {"t": s["t"]} for s in self.samples if s.get("health"))
        )
        for row in rows:
            if self.gpu_kind and row["p"] != "/health":
                continue
            status = row.get("s", row.get("st"))
            t = row["t"]
            if status == last[1] and t - last[0] < 2.0:
                continue
            last = (t, status)
            answer = "http" if isinstance(status, int) else ANSWERS.get(str(status), "refused")
            near = [o for at, o in ours_at if at <= t]
            ours = near[-1] if near else False
            listeners = (
                ()
                if answer == "refused"
                else (
                    Listener(
                        f"127.0.0.1:{self.args.port}", self.pid if ours else 77, ours, "" if ours else "python3"
                    ),
                )
            )
            latency = round(row["ms"] / 1000, 1) if isinstance(status, int) else None
            yield Event(
                round(t, 2),
                "port",
                PortReading(
                    "127.0.0.1",
                    self.args.port,
                    answer,
                    status if isinstance(status, int) else None,
                    latency,
                    "/health",
                    listeners,
                ),
            )

    def _listens(self, sample: dict) -> bool | None:
        seen = [p["listen"] for p in sample["procs"] if p.get("listen") is not None]
        if not seen:
            return None
        return any(entry[1] == self.args.port for listen in seen for entry in listen)


def _exit_code(run: Run) -> int | None:
    for event in run.events:
        if "end_wait" in event and "rc=" in str(event["end_wait"]):
            return int(str(event["end_wait"]).split("rc=")[1])
        if "stopped" in event and event["stopped"] is not None:
            return int(event["stopped"])
    table = run.source.parent / "table.md"
    if table.exists():
        for row in table.read_text().splitlines():
            cells = [c.strip() for c in row.split("|")]
            if len(cells) > 12 and cells[1] == run.source.name and "(" in cells[12]:
                return int(cells[12].split("(")[1].split(",")[0].rstrip(")"))
    return None


def _descendants(pid: int, raw: dict[int, dict]) -> list[dict]:
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        for p in raw.values():
            if p["ppid"] == parent and p["pid"] != pid:
                found.append(p)
                todo.append(p["pid"])
    return found


def _what(p: dict) -> str:
    return what_it_builds(argv_of(p["cmdline"]))


def _kb(text: str | None) -> int | None:
    return int(text.split()[0]) * 1024 if text else None


def _gpus(raw: list[dict]) -> GpuReading:
    gpus = tuple(
        Gpu(
            index=g["i"],
            name="NVIDIA H200",
            total_bytes=g["total"],
            used_bytes=g["used_v2"],
            reserved_bytes=g["reserved"],
            util_percent=g["gpu"],
            power_w=round(g["mW"] / 1000, 1),
            sm_clock_mhz=g["smclk"],
            pcie_rx_bytes_s=(g.get("rx_kBs") or 0) * 1024,
            pcie_tx_bytes_s=(g.get("tx_kBs") or 0) * 1024,
            processes=tuple(GpuProcess(pid, used) for pid, used in g["procs"]),
        )
        for g in raw
    )
    return GpuReading(gpus, driver="580.159.04", source="NVML")


def convert_nccl(source: Path, target: Path) -> int:
    """The NCCL hang on two GPUs (``nccl_hang.jsonl.gz``): two titled processes, no server around them. A launcher
    and one log line that sets the phase are made up."""
    args = ServerArgs(tp=2, model_path="/models/m")
    server = Server(
        500, 1, args=args, args_source="command line", version="0.5.17", log_path="/var/log/sglang/server.log"
    )
    text = "".join(
        f"[2026-11-29 17:00:00 {r}] Capture cuda graph begin. avail mem=20.00 GB\n" for r in ("TP0", "TP1")
    )
    events = [
        Event(0.0, "server", ServerReading(server)),
        Event(0.1, "log", LogReading(server.log_path, "8:1", 0, text, len(text))),
    ]
    for row in lines(source):
        if row["kind"] != "sample":
            continue
        t = round(row["at"], 2)
        launcher = Process(500, 1, 1, Role.LAUNCHER, state="S", threads=4, cpu_s=9.0, wchan="poll_schedule_timeout")
        ranks = [
            Process(
                pid=p["pid"],
                ppid=500,
                start_ticks=p["pid"],
                role=Role.WORKER,
                rank=f"TP{i}",
                title=f"sglang::scheduler_TP{i}",
                state=p["st"],
                threads=60,
                cpu_s=p["ticks"] / TICKS,
                wchan=p["wchan"],
                call=call_of(p["syscall"]),
            )
            for i, p in enumerate(row["proc"])
        ]
        gpus = tuple(
            Gpu(
                i,
                "NVIDIA H200",
                used_bytes=round(g["used_gib"] * 2**30),
                util_percent=g["util"],
                power_w=float(g["w"]),
                sm_clock_mhz=g["sm"],
                processes=(GpuProcess(ranks[i].pid),) if g["used_gib"] > 0.7 else (),
                ranks=(f"TP{i}",),
            )
            for i, g in enumerate(row["gpu"])
        )
        events.append(Event(t, "procs", ProcsReading((launcher, *ranks), uid=0)))
        events.append(Event(t + 0.01, "gpu", GpuReading(gpus, source="NVML")))
    return record(target, 1795960000.0, "real NCCL hang on two H200s; launcher and log line made up", events)


def convert(source: Path, target: Path, step: float) -> int:
    run = Run(source, step)
    return record(target, run.epoch or 0.0, f"real start {source.name}", run.all_events())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--step", type=float, default=1.0)
    given = parser.parse_args()
    if given.source.is_file():
        print(convert_nccl(given.source, given.target), "events")
    else:
        print(convert(given.source, given.target, given.step), "events")


if __name__ == "__main__":
    main()
