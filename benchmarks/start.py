"""First useful frame, idle CPU, idle output and quitting: sgmon beside a hello-world Textual app, in turns.

    python -m benchmarks.start [--rounds 5] [--idle 10]

sgmon waits for a server on a port that none has, unless --pid is given. Its first frame says what is looked for; the
"look" is the frame that shows what the first look at the machine has found, which needs the engine's modules.
"""

from __future__ import annotations

import argparse
import statistics
import sys

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--idle", type=float, default=10.0)
    parser.add_argument("--pid")
    parser.add_argument("--wanted", default="")
    args = parser.parse_args()
    ours = [sys.executable, "-m", "tui_app.cli", *(["--pid", args.pid] if args.pid else ["--port", "9"])]
    found = args.wanted.encode() or (b"last look" if not args.pid else b"TP0")
    hello = [sys.executable, "-c", HELLO]
    results: dict[str, list[Run]] = {"hello": [], "sgmon": [], "look": []}
    for _ in range(args.rounds):
        results["hello"].append(run(hello, b"hello-on-screen", idle_s=args.idle))
        results["sgmon"].append(run(ours, b"WAITING", idle_s=args.idle))
        results["look"].append(run(ours, found, idle_s=args.idle))
    print(f"{'':8} {'frame s':>8} {'idle CPU %':>11} {'idle B/s':>9} {'quit s':>7}   (medians of {args.rounds})")
    rows = {}
    for name, runs in results.items():
        frame = statistics.median(one.first_s if one.first_s is not None else 99.0 for one in runs)
        cpu = statistics.median(one.idle_cpu_s / args.idle * 100 for one in runs)
        out = statistics.median(one.idle_bytes / args.idle for one in runs)
        quit_s = statistics.median(one.quit_s for one in runs)
        rows[name] = frame
        print(f"{name:8} {frame:8.3f} {cpu:11.2f} {out:9.0f} {quit_s:7.3f}")
    print(f"first frame, sgmon / hello: {rows['sgmon'] / rows['hello']:.2f}")
    print(f"first look, sgmon / hello: {rows['look'] / rows['hello']:.2f}")


if __name__ == "__main__":
    main()
