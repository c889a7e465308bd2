"""CPU of the dashboard on a server, beside nvitop where it is installed, in turns in the same run.

python -m benchmarks.watching --pid N [--seconds 30] [--rounds 1]
python -m benchmarks.watching --demo healthy          # a simulated TP8 server
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys

from benchmarks.terminal import Run, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pid", type=int)
    parser.add_argument("--demo", default="")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    if args.pid is None:
        from sgmon import demo

        with demo.start(args.demo or "stuck-rank", tp=8, speed=4.0) as server:
            measure(server.pid, args.seconds, args.rounds)
    else:
        measure(args.pid, args.seconds, args.rounds)


def measure(pid: int, seconds: float, rounds: int) -> None:
    """Print CPU seconds a minute (children counted), bytes a second to the terminal, and the ratio."""
    peers = {
        "sgmon, 1 s": ([sys.executable, "-m", "tui_app.cli", "--pid", str(pid)], lambda seen: b"workers" in seen)
    }
    for interval in ("1", "2"):
        if shutil.which("nvitop"):
            peers[f"nvitop, {interval} s"] = (["nvitop", "--interval", interval], lambda seen: b"NVITOP" in seen)
    results: dict[str, list[Run]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name, (argv, wanted) in peers.items():
            results[name].append(run(argv, wanted, idle_s=seconds))
    print(f"{'':14} {'CPU s/min':>9} {'bytes/s':>8} {'first s':>8}")
    rates = {}
    for name, runs in results.items():
        rates[name] = statistics.median(one.idle_cpu_s / seconds * 60 for one in runs)
        out = statistics.median(one.idle_bytes / seconds for one in runs)
        first = statistics.median(one.first_s if one.first_s is not None else 99.0 for one in runs)
        print(f"{name:14} {rates[name]:9.2f} {out:8.0f} {first:8.2f}")
    if "nvitop, 1 s" in rates:
        print(f"sgmon / nvitop at the same interval: {rates['sgmon, 1 s'] / rates['nvitop, 1 s']:.2f}")
    else:
        print("nvitop is not installed: no peer (pip install nvitop)")


if __name__ == "__main__":
    main()
