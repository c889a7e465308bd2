"""Time to the first useful frame and of one look without a screen: sgmon beside a hello-world Textual app, in turns.

    python -m benchmarks.start [--rounds 7]           # a simulated TP8 server that runs already
    python -m benchmarks.start --pid N --wanted TP0   # another server, and a word of its rank rows
    python -m benchmarks.start --idle 10              # also idle CPU, idle output and quitting

frame: the first frame, which says what is looked for. ranks: the first screen with rank rows and a verdict other than
WAITING. status: ``sgmon status --json``, from start to end. All are divided by hello's first frame of the same rounds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

from benchmarks.terminal import Run, run

HELLO = """
from textual.app import App
from textual.widgets import Static
class Hello(App):
    BINDINGS = [("q", "quit", "Quit")]
    def compose(self):
        yield Static("hello-on-screen")
Hello().run()
"""
VERDICTS = (
    b"PROGRESSING",
    b"SLOW",
    b"READY",
    b"STALLED",
    b"SUSPECT",
    b"STOPPED",
    b"CRASHED",
    b"UNKNOWN",
    b"UNHEALTHY",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--idle", type=float, default=0.0)
    parser.add_argument("--pid", type=int)
    parser.add_argument("--wanted", default="TP0")
    args = parser.parse_args()
    if args.pid is not None:
        measure(args.pid, args)
        return
    from sgmon import demo

    with demo.start("stuck-rank", tp=8, speed=8.0) as server:
        time.sleep(8)  # its processes are there and the log has begun
        measure(server.pid, args)


def measure(pid: int, args: argparse.Namespace) -> None:
    """Print the medians and their ratios to hello."""
    ours = [sys.executable, "-m", "tui_app.cli", "--pid", str(pid)]
    hello = [sys.executable, "-c", HELLO]
    rank = args.wanted.encode()
    runs: dict[str, list[Run]] = {"hello": [], "frame": [], "ranks": []}
    status: list[float] = []
    for _ in range(args.rounds):
        runs["hello"].append(run(hello, lambda seen: b"hello-on-screen" in seen, idle_s=args.idle))
        runs["frame"].append(run(ours, lambda seen: b"WAITING" in seen, idle_s=args.idle))
        runs["ranks"].append(
            run(ours, lambda seen: rank in seen and any(word in seen for word in VERDICTS), idle_s=args.idle)
        )
        began = time.monotonic()
        subprocess.run([*ours[:-2], "status", "--json", *ours[-2:]], stdout=subprocess.DEVNULL, check=False)
        status.append(time.monotonic() - began)
    first = {name: statistics.median(_first(item) for item in items) for name, items in runs.items()}
    first["status"] = statistics.median(status)
    print(f"{'':8} {'seconds':>8} {'/ hello':>8}   (medians of {args.rounds})")
    for name, seconds in first.items():
        print(f"{name:8} {seconds:8.3f} {seconds / first['hello']:8.2f}")
    if args.idle:
        _print_idle(runs, args.idle)


def _first(item: Run) -> float:
    return 99.0 if item.first_s is None else item.first_s


def _print_idle(runs: dict[str, list[Run]], idle_s: float) -> None:
    print(f"{'':8} {'idle CPU %':>11} {'idle B/s':>9} {'quit s':>7}")
    for name, items in runs.items():
        cpu = statistics.median(item.idle_cpu_s / idle_s * 100 for item in items)
        out = statistics.median(item.idle_bytes / idle_s for item in items)
        print(f"{name:8} {cpu:11.2f} {out:9.0f} {statistics.median(item.quit_s for item in items):7.3f}")


if __name__ == "__main__":
    main()
