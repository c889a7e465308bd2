"""`d` and `D` beside py-spy by hand: eight real Python processes, how long it takes, how long a target is held up.

    python benchmarks/stacks.py [--ranks 8] [--rounds 5] [--json]

"by hand" is what a person types: `py-spy dump --pid N` for each rank in turn. One sample of D does the same
eight dumps, two at once and without stopping the process. The pause is the longest gap between two turns of a
loop in one target (it sleeps 1 ms a turn); the same without any dump is printed beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

from sgmon.model import Process, StackDump
from sgmon.probes.base import Clock, Watched
from sgmon.probes.pyspy import StackProbe
from sgmon.probes.pyspy_dump import find_pyspy
from sgmon.settings import Settings
from sgmon.stacks.causes import Facts, match
from sgmon.stacks.merge import merge

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
    processes = tuple(Process(t.child.pid, 0, 0, "scheduler", rank=f"TP{n}") for n, t in enumerate(targets))
    probe = StackProbe(Watched(Settings(), Clock()), lambda: processes)
    probe.request([process.pid for process in processes], samples, interval_s=interval_s)
    while True:
        reading = probe.read()
        if reading is not None and reading.done:
            probe.close()
            return reading.dumps


def by_hand(targets: list[Target], *options: str) -> None:
    """One py-spy after the other, as one types it."""
    pyspy = find_pyspy()
    assert pyspy
    for target in targets:
        subprocess.run([pyspy, "dump", *options, "--pid", str(target.child.pid)], capture_output=True, check=True)


def measure(name: str, rounds: int, ticker: Target, run: Callable[[], object]) -> dict[str, object]:
    took, pauses = [], []
    for _ in range(rounds):
        ticker.worst_pause_s()
        start = time.perf_counter()
        run()
        took.append(time.perf_counter() - start)
        pauses.append(ticker.worst_pause_s())
    return {
        "what": name,
        "median_s": round(statistics.median(took), 4),
        "max_s": round(max(took), 4),
        "worst_pause_ms": round(max(pauses) * 1000, 1),
    }


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
        ticker = targets[0]
        rows = [measure("nothing (1 s)", args.rounds, ticker, lambda: time.sleep(1))]
        rows.append(measure("d: one rank", args.rounds, ticker, lambda: dump_all(targets[:1], 1)))
        rows.append(
            measure(f"one sample of D: {args.ranks} ranks", args.rounds, ticker, lambda: dump_all(targets, 1))
        )
        rows.append(measure(f"by hand: {args.ranks} x py-spy dump", args.rounds, ticker, lambda: by_hand(targets)))
        rows.append(
            measure(
                f"by hand: {args.ranks} x py-spy dump --nonblocking",
                args.rounds,
                ticker,
                lambda: by_hand(targets, "--nonblocking"),
            )
        )
        rows.append(measure("D: 3 samples, a second apart", 1, ticker, lambda: dump_all(targets, 3)))
        dumps = dump_all(targets, 3, 0.1)
        rows.append(
            measure("merge and cause book", args.rounds, ticker, lambda: match(Facts(dumps=dumps)) or merge(dumps))
        )
    ratio = float(str(rows[3]["median_s"])) / float(str(rows[2]["median_s"]))
    if args.json:
        print(json.dumps({"rows": rows, "by_hand_over_one_sample": round(ratio, 2)}))
        return
    for row in rows:
        print(
            f"{row['what']:42} {row['median_s']:>8} s median {row['max_s']:>8} s max   pause {row['worst_pause_ms']} ms"
        )
    print(f"\neight by hand take {ratio:.2f} times one sample of D; D waits 2 s between its samples by design")


if __name__ == "__main__":
    main()
