"""What watching many nodes costs: events of simulated nodes, made by a generator, through the real NodesStore.

python -m benchmarks.nodes [--nodes 64] [--ranks 8] [--seconds 60] [--record FILE]

Prints CPU seconds a second of the watch, memory, the delay of a verdict, and bytes a second a node as recorded. No
process is started and nothing is read: what a transport costs is not in these numbers.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sgmon.analyse.nodes.store import NodesStore
from sgmon.model import (
    Event,
    Gpu,
    GpuProcess,
    GpuReading,
    Listener,
    LogReading,
    NodeReading,
    PortReading,
    Process,
    ProcsReading,
    Role,
    Server,
    ServerArgs,
    ServerReading,
)
from sgmon.recording.codec import Encoder, Lines
from sgmon.recording.writer import Recorder

MB = 1_000_000
TICK_S = 0.25
EPOCH = 1_795_000_000.0
#: seconds of the watch at which the ranks have their weights, and at which one of them stops to do anything
LOADED_S = 20.0


class SimulatedNode:
    """One node: its events second by second. stuck: this local rank makes no progress after the load."""

    def __init__(self, index: int, count: int, ranks: int, stuck: int | None = None, offset_s: float = 0.0) -> None:
        self.name = f"node-{index:02}"
        self.index, self.count, self.per_node, self.stuck, self.offset_s = index, count, ranks, stuck, offset_s
        self.names = [f"TP{index * ranks + i}" for i in range(ranks)]
        self._dice = random.Random(index)
        self._totals: dict[tuple[str, str], float] = {}
        self._offset = 0
        self._said: set[str] = set()

    def begin(self) -> Iterator[Event]:
        """Its link and its server."""
        yield self._event(0.0, "node", self._link())
        yield self._event(0.1, "server", ServerReading(self._server()))

    def second(self, t: float) -> Iterator[Event]:
        """Everything that one second brings."""
        shift = self.index / self.count * 0.8  # the nodes' readings do not come at the same time
        if round(t) % 5 == 0:
            yield self._event(t + shift, "node", self._link())
        yield self._event(t + shift, "procs", self._procs(t), 0.02)
        yield self._event(t + shift + 0.02, "gpu", self._gpus(t), 0.01)
        text = self._log(t)
        if text:
            self._offset += len(text)
            reading = LogReading("/var/log/server.log", "8:1", self._offset - len(text), text, self._offset)
            yield self._event(t + shift + 0.1, "log", reading)
        if self.index == 0 and round(t) % 2 == 0:
            who = (Listener("127.0.0.1:30000", 100, True),)
            yield self._event(t + shift + 0.1, "port", PortReading("127.0.0.1", 30000, "refused", listeners=who[:0]))

    def _event(self, t: float, kind: str, reading: Any, took_s: float | None = None) -> Event:
        return Event(round(t, 3), kind, reading, took_s, self.name)

    def _link(self) -> NodeReading:
        error_s = 0.0004 + self._dice.random() / 5000
        return NodeReading(
            self.name,
            "live",
            offset_s=self.offset_s,
            offset_error_s=round(error_s, 5),
            round_trip_s=round(2 * error_s, 5),
            hostname=self.name,
            collector="0.9.0",
            python="3.12",
        )

    def _server(self) -> Server:
        args = ServerArgs(
            tp=self.count * self.per_node,
            nnodes=self.count,
            node_rank=self.index,
            model_path="/models/deepseek",
            dist_init_addr="10.0.0.1:20000",
            raw=(("tp_size", str(self.count * self.per_node)), ("node_rank", str(self.index))),
        )
        return Server(
            100,
            1,
            started_epoch=EPOCH + self.offset_s - 5.0,
            args=args,
            args_source="command line",
            version="0.5.23" if self.index != 1 else "0.5.22",
            log_path="/var/log/server.log",
            log_kind="file",
        )

    def _total(self, rank: str, what: str, step: float) -> float:
        key = rank, what
        self._totals[key] = self._totals.get(key, 1e6) + step
        return self._totals[key]

    def _procs(self, t: float) -> ProcsReading:
        loading = t < LOADED_S
        workers = tuple(self._worker(101 + i, name, i, loading) for i, name in enumerate(self.names))
        launcher = Process(100, 1, 1, Role.LAUNCHER, state="S", cpu_s=self._total("", "cpu", 0.002), threads=30)
        return ProcsReading((launcher, *workers), uid=0, read_ahead_bytes=1 << 17, oom_kills=0)

    def _worker(self, pid: int, name: str, local: int, loading: bool) -> Process:
        spins = not loading and local != self.stuck
        return Process(
            pid,
            100,
            pid,
            Role.WORKER,
            rank=name,
            title=f"sglang::scheduler_{name}",
            state="R" if spins else "S",
            wchan="0" if spins else "futex_do_wait",
            threads=240,
            cpu_s=self._total(name, "cpu", 1.0 if spins else 0.4 if loading else 0.0),
            tree_cpu_s=0.0,
            wait_s=0.0,
            rss_anon_bytes=4_000 * MB,
            rss_file_bytes=round(self._total(name, "mapped", 40 * MB if loading else 0)),
            read_bytes=round(self._total(name, "read", 90 * MB * (0.8 + self._dice.random() / 5) if loading else 0)),
            rchar_bytes=round(self._total(name, "rchar", 0)),
        )

    def _gpus(self, t: float) -> GpuReading:
        loading = t < LOADED_S
        gpus = []
        for i, name in enumerate(self.names):
            spins = not loading and i != self.stuck
            used = round(min(t, LOADED_S) / LOADED_S * 120_000) * MB
            gpus.append(
                Gpu(
                    i,
                    "NVIDIA H200",
                    uuid=f"GPU-{self.index:02}-{i}",
                    total_bytes=143_771 * MB,
                    used_bytes=used,
                    util_percent=100 if spins else 0,
                    power_w=(122.0 if spins else 80.0) + self._dice.random() * 0.6,
                    power_limit_w=700.0,
                    temperature_c=35,
                    sm_clock_mhz=1980,
                    processes=(GpuProcess(101 + i, used, name),),
                    ranks=(name,),
                )
            )
        return GpuReading(tuple(gpus), driver="570.86.15", source="NVML")

    def _log(self, t: float) -> str:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(EPOCH + self.offset_s + t))
        said = {1: "Init torch distributed begin.", 4: "Load weight begin. avail mem=138.90 GB"}
        words = said.get(round(t), "")
        if round(t) == LOADED_S:
            words = "Load weight end. elapsed=15.80 s, type=DeepseekV3ForCausalLM, avail mem=20.10 GB, mem usage=118.7 GB."
        return "".join(f"[{stamp} {name}] {words}\n" for name in self.names) if words else ""


def events(nodes: list[SimulatedNode], seconds: float) -> Iterator[Event]:
    """Of all nodes in the order of time, with the ticks of the watch."""
    every = [event for node in nodes for event in node.begin()]
    for second in range(1, round(seconds) + 1):
        every += [event for node in nodes for event in node.second(float(second))]
        every += [Event(second + i * TICK_S, "tick") for i in range(4)]
        every.sort(key=lambda event: event.t)
        yield from every
        every = []


def simulated(count: int, ranks: int) -> list[SimulatedNode]:
    """One rank of the node in the middle makes no progress after the load; every clock is off by another time."""
    middle = count // 2
    return [SimulatedNode(i, count, ranks, 3 if i == middle else None, offset_s=0.01 * i) for i in range(count)]


def record(path: Path, nodes: list[SimulatedNode], seconds: float) -> None:
    """The same as a recording."""
    recorder = Recorder(path, EPOCH, note=f"simulated: {len(nodes)} nodes")
    for event in events(nodes, seconds):
        recorder.write(event)
    recorder.close()


def measure(count: int, ranks: int, seconds: float) -> dict[str, float | str]:
    """One run as fast as it goes; a step's time is CPU time of this process."""
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    store, delays, states = NodesStore(EPOCH), [], []
    steps: list[float] = []
    spent = 0.0
    for event in events(simulated(count, ranks), seconds):
        begun = time.process_time()
        snapshot = store.step(event)
        took = time.process_time() - begun
        spent += took
        if event.kind == "tick":
            steps.append(took)
        if not states or states[-1][1] != snapshot.verdict.state:
            states.append((event.t, snapshot.verdict.state))
    encoder, lines, size = Encoder(), Lines(), 0
    squeeze = zlib.compressobj(5, zlib.DEFLATED, 31)
    packed = 0
    for event in events(simulated(count, ranks), seconds):
        encoded = encoder.encode(event)
        if encoded is not None:
            line = lines.line(encoded) + b"\n"
            size += len(line)
            packed += len(squeeze.compress(line))
    packed += len(squeeze.flush())
    delays = [t - LOADED_S for t, state in states if state in ("suspect", "stalled")]
    verdict = store.snapshot.verdict
    return {
        "nodes": count,
        "ranks": count * ranks,
        "CPU s/s": round(spent / seconds, 5),
        "tick ms, median": round(statistics.median(steps) * 1000, 3),
        "tick ms, most": round(max(steps) * 1000, 1),
        "MiB": round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) / 1024, 1),
        "suspect after s": round(delays[0], 1) if delays else "-",
        "stalled after s": round(delays[1], 1) if len(delays) > 1 else "-",
        "B/s a node": round(size / seconds / count),
        "B/s a node, gzip": round(packed / seconds / count),
        "verdict": f"{verdict.state}: {verdict.headline}",
    }


def main() -> None:
    """Measure, or write a recording."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[2, 8, 64])
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--record", type=Path)
    args = parser.parse_args()
    if args.record is not None:
        record(args.record, simulated(args.nodes[0], args.ranks), args.seconds)
        return
    for count in args.nodes:
        for name, value in measure(count, args.ranks, args.seconds).items():
            print(f"{name:>18}  {value}")
        print()


if __name__ == "__main__":
    main()
