"""Time to the first useful frame and of one look without a screen: sgmon beside a hello-world Textual app, in turns.

    python -m benchmarks.start [--rounds 7]           # a simulated TP8 server that runs already
    python -m benchmarks.start --pid N --wanted TP0   # another server, and a word of its rank rows
    python -m benchmarks.start --idle 10              # also idle CPU, idle output and quitting
    python -m benchmarks.start --beside ../older      # another tree of sgmon in turns with this one

frame: the first frame, which says what is looked for. ranks: the first screen with rank rows and a verdict other than
WAITING. status: ``sgmon status --json``, from start to end. All are divided by hello's first frame of the same rounds;
CPU seconds (with children, until the same moment) are the better measure on a machine that has other work.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.terminal import Run, as_installed, run

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
    parser.add_argument("--beside", metavar="DIR", help="another tree of sgmon, measured in turns with this one")
    args = parser.parse_args()
    with as_installed():
        if args.pid is not None:
            measure(args.pid, args)
            return
        from sgmon import demo

        with demo.start("stuck-rank", tp=8, speed=8.0) as server:
            time.sleep(8)  # its processes are there and the log has begun
            measure(server.pid, args)


def measure(pid: int, args: argparse.Namespace) -> None:
    """Print the medians and their ratios to hello. A first round, which writes the byte code, is not counted."""
    rank = args.wanted.encode()
    wanted = {
        "frame": lambda seen: b"WAITING" in seen,
        "ranks": lambda seen: rank in seen and any(word in seen for word in VERDICTS),
    }
    trees = {"": os.getcwd(), **({"beside ": args.beside} if args.beside else {})}
    runs: dict[str, list[Run]] = defaultdict(list)
    status: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for _ in range(args.rounds + 1):
        runs["hello"].append(
            run([sys.executable, "-c", HELLO], lambda seen: b"hello-on-screen" in seen, idle_s=args.idle)
        )
        for of, tree in trees.items():
            ours = [sys.executable, "-m", "tui_app.cli"]
            with _tree(tree):
                for what, seen in wanted.items():
                    runs[of + what].append(run([*ours, "--pid", str(pid)], seen, idle_s=args.idle))
                status[f"{of}status"].append(_status([*ours, "status", "--json", "--pid", str(pid)]))
    first = {name: [(_first(item), item.first_cpu_s) for item in items] for name, items in runs.items()}
    medians = {
        name: [statistics.median(values) for values in zip(*items[1:], strict=True)]
        for name, items in (first | status).items()
    }
    print(f"{'':14} {'seconds':>8} {'/ hello':>8} {'CPU s':>8} {'/ hello':>8}   (medians of {args.rounds})")
    hello_s, hello_cpu_s = medians["hello"]
    for name, (seconds, cpu_s) in medians.items():
        print(f"{name:14} {seconds:8.3f} {seconds / hello_s:8.2f} {cpu_s:8.3f} {cpu_s / hello_cpu_s:8.2f}")
    if args.idle:
        _print_idle(runs, args.idle)


@contextmanager
def _tree(tree: str) -> Iterator[None]:
    """Programs started meanwhile import sgmon from there."""
    kept = os.getcwd(), os.environ.get("PYTHONPATH")
    os.chdir(tree)
    os.environ["PYTHONPATH"] = tree
    try:
        yield
    finally:
        os.chdir(kept[0])
        if kept[1] is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = kept[1]


def _status(argv: list[str]) -> tuple[float, float]:
    """Seconds from start to end, and CPU seconds, of a look without a screen."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=False)
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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
