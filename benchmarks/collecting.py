"""CPU of collecting: the engine without a screen on a server, by thread.

python -m benchmarks.collecting --demo healthy [--seconds 30] [--interval 1 2]
python -m benchmarks.collecting --pid N --nvml        # read NVML also where the server is a simulated one
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.terminal import cpu_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pid", type=int)
    parser.add_argument("--demo", default="healthy")
    parser.add_argument("--settle", type=float, default=10.0, help="seconds before the count begins")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--interval", type=float, nargs="+", default=[1.0, 2.0])
    parser.add_argument("--nvml", action="store_true")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        watch(args)
    elif args.pid is not None:
        start(args)
    else:
        from sgmon import demo

        with demo.start(args.demo, tp=8, speed=20.0) as server:
            args.pid = server.pid
            start(args)


def start(args: argparse.Namespace) -> None:
    """A process of its own for each interval, so that none pays for another's imports."""
    time.sleep(args.settle)
    for interval in args.interval:
        argv = [sys.executable, "-m", "benchmarks.collecting", "--here", "--pid", str(args.pid)]
        argv += ["--seconds", str(args.seconds), "--settle", str(args.settle), "--interval", str(interval)]
        subprocess.run(argv + ["--nvml"] * args.nvml, check=True)


def watch(args: argparse.Namespace) -> None:
    """Run source, store, recorder and ring as ``sgmon record`` does; print CPU seconds a minute by thread."""
    from sgmon.collect.gpu.probe import GpuProbe
    from sgmon.collect.source import LiveSource
    from sgmon.recording.writer import Recorder
    from sgmon.settings import Settings
    from sgmon.watch.engine import Engine
    from sgmon.watch.persistence import Persistence

    if args.nvml:
        GpuProbe.read = GpuProbe._read_nvml  # type: ignore[method-assign]
    source = LiveSource(Settings(pid=args.pid, interval_s=args.interval[0]))
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Path(folder) / "r.jsonl.gz", source.epoch)
        engine = Engine(source, recorder=recorder, persistence=Persistence(source.epoch))
        engine.start()
        time.sleep(args.settle)
        before, whole = by_thread(), cpu_of(os.getpid())
        time.sleep(args.seconds)
        after, total = by_thread(), cpu_of(os.getpid()) - whole
        engine.stop()
    per_minute = 60 / args.seconds
    spent = {name: (after[name] - before.get(name, 0.0)) * per_minute for name in after}
    parts = ", ".join(f"{name} {s:.2f}" for name, s in sorted(spent.items(), key=lambda i: -i[1]) if s >= 0.005)
    own = sum(spent.values())
    print(
        f"interval {args.interval[0]:g} s: {total * per_minute:.2f} CPU s/min with children, {own:.2f} own: {parts}"
    )


def by_thread() -> dict[str, float]:
    """Name of each thread -> its CPU seconds."""
    spent = {}
    for thread in threading.enumerate():
        try:
            spent[thread.name] = (
                int(Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text().split()[0]) / 1e9
            )
        except OSError:
            continue
    return spent


if __name__ == "__main__":
    main()
