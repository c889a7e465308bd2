"""Turn raw records of real vLLM starts (0.5 s samples of /proc and NVML) into sgmon recordings.

    python -m tests.vllm.convert SOURCE TARGET [--step 1.0] [--vllm 0.32.0]

SOURCE is a folder of one run: ``timeline.jsonl.gz``, ``loglines.jsonl``, ``health.jsonl``, ``events.jsonl``, ``cmd.txt``. Roles
and ranks are made by the code of the product. What the raw records do not have (run-queue wait, RSS split, TCP rows,
most exit statuses) stays None.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from sgmon.collect.probes.member_roles import Member, name_all, worker_above
from sgmon.discovery.process_roles import compiler_name, role_of_comm, what_it_builds
from sgmon.model import (
    ESSENTIAL_ROLES,
    Compiler,
    Event,
    Gpu,
    GpuProcess,
    GpuReading,
    Listener,
    PortReading,
    Process,
    ProcsReading,
    Role,
    Server,
    ServerReading,
    Shards,
)
from sgmon.servers import registry
from tests.diagnosis.raw_records import ANSWERS, TICKS, Row, argv_of, call_of, lines, log_events, record


class Run:
    """One raw run, read into events."""

    def __init__(self, source: Path, step: float, version: str) -> None:
        self.source, self.step = source, step
        start = json.loads((source / "cmd.txt").read_text())
        self.pid, self.epoch = start["pid"], start["t0"]
        self.samples = list(lines(source / "timeline.jsonl.gz"))
        self.actions = [row for row in lines(source / "events.jsonl") if row["kind"] in ("action", "root_exit")]
        rows = (p for s in self.samples for p in s["procs"] if p["pid"] == self.pid)
        first = next(p for p in rows if "serve.sh" not in p["cmdline"])
        argv = tuple(first["cmdline"].split())
        recognised = registry.recognise(argv)
        assert recognised is not None, argv
        family, launch = recognised
        self.family = family
        self.server = Server(
            pid=self.pid,
            start_ticks=first["start"],
            started_epoch=self.epoch,
            argv=argv,
            args=family.discovery.parse_args(launch, lambda path: {}),
            args_source="command line",
            version=version,
            version_source="vllm.dist-info",
            log_path=f"/var/log/vllm/{source.name}.log",
            log_kind="file",
            family=family.name,
        )
        self.members: dict[int, Member] = {}
        self.known: dict[int, Process] = {}
        self.gone: dict[int, Process] = {}

    def all_events(self) -> list[Event]:
        found = [
            Event(0.0, "server", ServerReading(self.server)),
            *self._procs(),
            *log_events(
                ((row["t"], row["line"] + "\n") for row in lines(self.source / "loglines.jsonl")),
                self.server.log_path,
            ),
            *self._port(),
        ]
        return sorted(found, key=lambda e: (e.t, e.kind != "server"))

    def _procs(self) -> Iterator[Event]:
        last = -10.0
        for sample in self.samples:
            if sample["t"] - last < self.step - 0.2:
                continue
            last = sample["t"]
            yield Event(round(last, 2), "procs", self._reading(sample))
            if sample.get("gpus"):
                yield Event(round(last, 2) + 0.01, "gpu", _gpus(sample["gpus"]))
        if self.pid in self.gone or any(row["kind"] == "root_exit" for row in self.actions):
            yield Event(round(last + 2, 2), "procs", ProcsReading(tuple(self._all_gone()), uid=0))
            yield Event(round(last + 2.1, 2), "server", ServerReading(None, gone_pid=self.pid))

    def _reading(self, sample: Row) -> ProcsReading:
        raw = {p["pid"]: p for p in sample["procs"] if p["pid"] not in self.gone}
        for pid, p in raw.items():
            member = self.members.setdefault(pid, Member(pid, p["ppid"], p["start"]))
            argv = argv_of(p["cmdline"])
            member.argv = argv or member.argv
            if p["state"] == "Z" and member.role is Role.OTHER:
                member.role = role_of_comm(p["comm"], self.family)
        self.members = {pid: member for pid, member in self.members.items() if pid in raw or pid in self.gone}
        name_all(self.members, self.server)
        for pid, old in list(self.known.items()):
            ended = pid not in raw or (raw[pid]["state"] == "Z" and raw[pid]["threads"] <= 1)
            if ended:
                del self.known[pid]
                if old.role in ESSENTIAL_ROLES:
                    self.gone[pid] = self._ended(old, sample["t"])
        living = [p for pid, p in sorted(raw.items(), key=lambda row: row[1]["start"]) if pid not in self.gone]
        shown = [p for p in living if self.members[p["pid"]].role not in (Role.COMPILER, Role.OTHER)]
        shown = [p for p in shown if not (p["state"] == "Z" and p["threads"] <= 1)]
        processes = [self._process(p, raw) for p in shown]
        self.known.update({process.pid: process for process in processes})
        return ProcsReading((*processes, *self.gone.values()), uid=0, read_ahead_bytes=128 * 1024)

    def _process(self, p: Row, raw: dict[int, Row]) -> Process:
        pid, member = p["pid"], self.members[p["pid"]]
        helpers = [q for q in raw.values() if q["pid"] != pid and self._helper_of(q["pid"]) == pid]
        built = [q for q in helpers if self.members[q["pid"]].role is Role.COMPILER]
        shards = tuple(sorted({Path(s).name for s in p.get("mapped_st") or []}))
        return Process(
            pid=pid,
            ppid=p["ppid"],
            start_ticks=p["start"],
            role=member.role,
            rank=member.rank,
            rank_inferred=member.rank_inferred,
            becomes=member.becomes if member.role is Role.IMPORTING else Role.OTHER,
            title=p["cmdline"].strip()[:60],
            comm=p["comm"],
            state=p["state"],
            threads=p["threads"],
            cpu_s=(p["utime"] + p["stime"]) / TICKS,
            tree_cpu_s=sum(q["utime"] + q["stime"] for q in helpers) / TICKS,
            rss_anon_bytes=round(p["rss_mb"] * 1e6),
            read_bytes=p.get("read_bytes"),
            rchar_bytes=p.get("rchar"),
            wchan=p.get("wchan"),
            call=call_of(p.get("syscall") or ""),
            fd_count=p.get("nfd"),
            shards=Shards(shards, 0, "/models", "ext4") if shards else None,
            compilers=tuple(
                Compiler(
                    q["pid"],
                    compiler_name(argv_of(q["cmdline"]), q["comm"]),
                    what_it_builds(argv_of(q["cmdline"]) or ("",)),
                    (q["utime"] + q["stime"]) / TICKS,
                )
                for q in built
            ),
        )

    def _helper_of(self, pid: int) -> int | None:
        if self.members[pid].role in ESSENTIAL_ROLES:
            return None
        return worker_above(pid, self.members, self.server)

    def _ended(self, old: Process, t: float) -> Process:
        killed = any(
            row.get("do") == "KILL" and row["pid"] == old.pid and row["t"] <= t + 1.0 for row in self.actions
        )
        code = next((row["rc"] for row in self.actions if row["kind"] == "root_exit"), None)
        code = code if old.pid == self.pid else None
        signal = 9 if killed else -code if code is not None and code < 0 else None
        return Process(
            pid=old.pid,
            ppid=old.ppid,
            start_ticks=old.start_ticks,
            role=old.role,
            rank=old.rank,
            rank_inferred=old.rank_inferred,
            title=old.title,
            comm=old.comm,
            state="X",
            gone=True,
            exit_code=code if signal is None else None,
            exit_signal=signal,
            exit_source="pidfd" if signal or code is not None else "",
        )

    def _all_gone(self) -> Iterator[Process]:
        yield from self.gone.values()
        left = any(row.get("kind") == "left_behind" for row in lines(self.source / "events.jsonl"))
        for pid, old in self.known.items():
            if pid == self.pid or not left:
                if old.role in ESSENTIAL_ROLES:
                    yield self._ended(old, 1e9)
            else:
                yield old

    def _port(self) -> Iterator[Event]:
        """Who answers in the first seconds, before the server can listen, is a stranger."""
        host, port = "127.0.0.1", self.server.args.port
        rows = [row for row in lines(self.source / "health.jsonl") if row["path"] == "/health"]
        ours = not any(isinstance(row["st"], int) and row["t"] < 5.0 for row in rows)
        last: tuple[float, object] = (-10.0, None)
        for row in rows:
            status, t = row["st"], row["t"]
            if status == last[1] and t - last[0] < (10.0 if status == 200 else 2.0):
                continue
            last = (t, status)
            answer = "http" if isinstance(status, int) else ANSWERS.get(str(status), "refused")
            listeners: tuple[Listener, ...] = ()
            if answer != "refused":
                listeners = (Listener(f"{host}:{port}", self.pid if ours else 77, ours, "" if ours else "python3"),)
            if listeners and not ours:
                answer, status = "skipped", None
            code = status if isinstance(status, int) else None
            latency = round(row["ms"] / 1000, 3) if code is not None else None
            yield Event(round(t, 2), "port", PortReading(host, port, answer, code, latency, "/health", listeners))


def _gpus(raw: list[Row]) -> GpuReading:
    gpus = tuple(
        Gpu(
            index=g["i"],
            name="NVIDIA H200",
            total_bytes=g["total"],
            used_bytes=g["used"],
            util_percent=g["gpu"],
            power_w=round(g["mW"] / 1000, 1),
            sm_clock_mhz=g["smclk"],
            processes=tuple(GpuProcess(pid, used) for pid, used in g["procs"]),
        )
        for g in raw
    )
    return GpuReading(gpus, source="NVML")


def convert(source: Path, target: Path, step: float, version: str) -> int:
    run = Run(source, step, version)
    return record(target, run.epoch, f"real start {source.name}", run.all_events())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--step", type=float, default=1.0)
    parser.add_argument("--vllm", default="0.32.0", help="the version that ran")
    given = parser.parse_args()
    print(convert(given.source, given.target, given.step, given.vllm), "events")


if __name__ == "__main__":
    main()
