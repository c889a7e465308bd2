"""From a key to the screen, quitting and memory: on a simulated TP8 server, and the same while every probe hangs.

    python -m benchmarks.keys [--presses 60] [--scenario healthy]

Beside them a hello-world Textual app that answers the same keys: what Textual itself takes, in the same run.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.terminal import Session

HELLO = """
from textual.app import App
from textual.widgets import Static
class Hello(App):
    BINDINGS = [("q", "quit", "Quit"), *((n, f"show('{n}')", n) for n in "12345")]
    def compose(self):
        yield Static("▸1")
    def action_show(self, number):
        self.query_one(Static).update(f"▸{number}")
Hello().run()
"""
#: after this long a probe that hangs is shown as such
HUNG_S = 8.0


@dataclass(frozen=True, slots=True)
class Result:
    """latencies: ms. rss: MB of the process itself."""

    latencies: list[float]
    quit_s: float
    rss_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--presses", type=int, default=60)
    parser.add_argument("--scenario", default="healthy")
    args = parser.parse_args()
    from sgmon import demo

    with demo.start(args.scenario, tp=8, speed=4.0) as server:
        pid = str(server.pid)
        runs = {
            "hello": ([sys.executable, "-c", HELLO], 1.0),
            "healthy": ([sys.executable, "-m", "tui_app.cli", "--pid", pid], 3.0),
            "hanging": ([sys.executable, "-m", "benchmarks.hanging", pid], HUNG_S),
        }
        results = {name: measure(argv, args.presses, settle_s) for name, (argv, settle_s) in runs.items()}
    print(f"{'':8} {'p50 ms':>7} {'p95 ms':>7} {'max ms':>7} {'quit s':>7} {'RSS MB':>7}   ({args.presses} keys)")
    for name, one in results.items():
        p50, p95 = statistics.median(one.latencies), statistics.quantiles(one.latencies, n=20)[-1]
        print(f"{name:8} {p50:7.1f} {p95:7.1f} {max(one.latencies):7.1f} {one.quit_s:7.3f} {one.rss_mb:7.1f}")
    hello = statistics.median(results["hello"].latencies)
    for name in ("healthy", "hanging"):
        print(f"p50, {name} / hello: {statistics.median(results[name].latencies) / hello:.2f}")


def measure(argv: Sequence[str], presses: int, settle_s: float) -> Result:
    """Go through the panels by number, waiting for the mark of the focused one after each key."""
    chance = random.Random(1)
    with Session(argv) as session:
        if session.until("▸1".encode(), 30) is None:
            raise RuntimeError(f"nothing came of {argv}")
        session.idle(settle_s)
        latencies = []
        for press in range(presses):
            number = "23451"[press % 5]
            session.forget()
            pressed = time.monotonic()
            session.press(number.encode())
            seen = session.until(f"▸{number}".encode(), 10)
            latencies.append(((seen or pressed + 10) - pressed) * 1000)
            session.idle(chance.uniform(0.05, 0.25))
        rss = _rss_mb(session.pid)
        return Result(latencies, session.quit(), rss)


def _rss_mb(pid: int) -> float:
    with open(f"/proc/{pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
