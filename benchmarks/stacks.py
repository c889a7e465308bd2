"""`d` and `D` beside py-spy by hand: eight real Python processes, how long it takes, how long a target is held up.

    python -m benchmarks.stacks [--ranks 8] [--rounds 5] [--json]

"by hand" is what a person types: `py-spy dump --pid N` for each rank in turn. One sample of D does the same
eight dumps, two at once and without stopping the process. The pause is the longest gap between two turns of a
loop in one target (it sleeps 1 ms a turn); the same without any dump is printed beside it.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from sgmon.analyse.stacks.causes import book_of, match
from sgmon.analyse.stacks.conditions import Facts
from sgmon.analyse.stacks.merge import merge
from sgmon.collect.probes.base import Clock, Watched
from sgmon.collect.probes.pyspy import StackProbe
from sgmon.collect.probes.pyspy_dump import find_pyspy
from sgmon.model import Process, Role, StackDump
from sgmon.servers.sglang.stacks import STACKS
from sgmon.settings import Settings

RANK = """
import sys, threading
def barrier(): print("there", flush=True); sys.stdin.read()
def deep(n): return barrier() if n == 0 else deep(n - 1)
for _ in range(20): threading.Thread(target=threading.Event().wait, daemon=True).start()
deep(30)
"""
TICKER = """
import sys, threading, time
worst = 0.0
def ask():
    global worst
    for _ in sys.stdin:
        print(worst, flush=True); worst = 0.0
threading.Thread(target=ask, daemon=True).start()
print("there", flush=True)
last = time.perf_counter()
while True:
    time.sleep(0.001)
    now = time.perf_counter(); worst = max(worst, now - last - 0.001); last = now
"""


class Target:
    """A Python process that says when it is there."""

    def __init__(self, program: str) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-S", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.child.stdin and self.child.stdout
        self.stdin, self.stdout = self.child.stdin, self.child.stdout
        self.stdout.readline()

    def worst_pause_s(self) -> float:
        """Longest gap since the last question (tickers only)."""
        self.stdin.write("?\n")
        self.stdin.flush()
        return float(self.stdout.readline())

    def close(self) -> None:
        self.child.kill()
        self.child.communicate()


def dump_all(targets: list[Target], samples: int, interval_s: float = 1.0) -> tuple[StackDump, ...]:
    """What `d` (one target, one sample) and `D` do, through the probe."""
    processes = tuple(Process(t.child.pid, 0, 0, Role.WORKER, rank=f"TP{n}") for n, t in enumerate(targets))
    probe = StackProbe(Watched(Settings(), Clock()), lambda: processes)
    probe.request([process.pid for process in processes], samples, interval_s=interval_s)
    dumps: list[StackDump] = []
    while True:
        reading = probe.read()
        dumps += reading.dumps if reading is not None else ()
        if reading is not None and reading.done:
            probe.close()
            return tuple(dumps)


def by_hand(targets: list[Target], *options: str) -> None:
    """One py-spy after the other, as one types it."""
    pyspy = find_pyspy()
    assert pyspy
    for target in targets:
        subprocess.run([pyspy, "dump", *options, "--pid", str(target.child.pid)], capture_output=True, check=True)


@dataclass
class Row:
    """One thing measured, all its rounds."""

    what: str
    run: Callable[[], object]
    took_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    pause_s: list[float] = field(default_factory=list)

    def round(self, ticker: Target) -> None:
        ticker.worst_pause_s()
        cpu, start = cpu_s(), time.perf_counter()
        self.run()
        self.took_s.append(time.perf_counter() - start)
        self.cpu_s.append(cpu_s() - cpu)
        self.pause_s.append(ticker.worst_pause_s())

    def as_dict(self) -> dict[str, object]:
        return {
            "what": self.what,
            "median_s": round(statistics.median(self.took_s), 4),
            "best_s": round(min(self.took_s), 4),
            "cpu_s": round(statistics.median(self.cpu_s), 4),
            "median_pause_ms": round(statistics.median(self.pause_s) * 1000, 1),
            "worst_pause_ms": round(max(self.pause_s) * 1000, 1),
        }


def cpu_s() -> float:
    """CPU of this process and of the py-spy runs it has reaped."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with ExitStack() as stack:
        targets = [Target(RANK if n else TICKER) for n in range(args.ranks)]
        for target in targets:
            stack.callback(target.close)
        dumps = dump_all(targets, 3, 0.1)
        rows = [
            Row("nothing (0.2 s)", lambda: time.sleep(0.2)),
            Row("d: one rank", lambda: dump_all(targets[:1], 1)),
            Row(f"one sample of D: {args.ranks} ranks", lambda: dump_all(targets, 1)),
            Row(f"by hand: {args.ranks} x py-spy dump", lambda: by_hand(targets)),
            Row(f"by hand: {args.ranks} x --nonblocking", lambda: by_hand(targets, "--nonblocking")),
            Row(
                "merge and cause book, 24 dumps",
                lambda: (merge(list(dumps), STACKS), match(Facts(dumps=dumps), book_of(STACKS))),
            ),
        ]
        for _ in range(args.rounds):  # in turns: what else the machine does hits all of them
            for row in rows:
                row.round(targets[0])
        rows.append(Row("D: 3 samples, a second apart", lambda: dump_all(targets, 3)))
        rows[-1].round(targets[0])
    found = [row.as_dict() for row in rows]
    wall = statistics.median(rows[3].took_s) / statistics.median(rows[2].took_s)
    cpu = statistics.median(rows[3].cpu_s) / statistics.median(rows[2].cpu_s)
    if args.json:
        print(json.dumps({"rows": found, "by_hand_over_sample_wall": wall, "by_hand_over_sample_cpu": cpu}))
        return
    for row in found:
        print(
            f"{row['what']:34} {row['median_s']:>8} s median {row['best_s']:>8} s best {row['cpu_s']:>8} s CPU"
            f"   pause {row['median_pause_ms']:>5} ms median {row['worst_pause_ms']:>6} ms worst"
        )
    print(f"\n{args.ranks} by hand over one sample of D: {wall:.2f} in time, {cpu:.2f} in CPU")
    print("D waits 2 s between its samples by design")


if __name__ == "__main__":
    main()
