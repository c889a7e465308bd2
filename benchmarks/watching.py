"""CPU of the dashboard on a server, beside nvitop in turns in the same run, each at intervals of 1 and 2 s.

python -m benchmarks.watching                         # a simulated TP8 server, eight GPUs of the NVML double
python -m benchmarks.watching --pid N [--seconds 30] [--rounds 1] [--nvitop PATH]

With --pid the machine's own NVML is read; without, the one of tests/fakenvml by all programs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.terminal import Run, run

#: for imports, the first looks and the first screens
SETTLE_S = 8.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pid", type=int)
    parser.add_argument("--demo", default="healthy")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--nvitop", default=shutil.which("nvitop") or "")
    args = parser.parse_args()
    if args.pid is not None:
        measure(args.pid, args)
        return
    from sgmon import demo
    from tests.fakenvml.library import State, build

    with tempfile.TemporaryDirectory() as folder, demo.start(args.demo, tp=8, speed=8.0) as server:
        time.sleep(15)  # it serves, and is idle
        pids = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_rank(pid, server.gpus)]
        state = State(Path(folder) / "state")
        state.write(
            *("count 8", "gpu * name NVIDIA H200", "gpu * mem 20000", "gpu * power 122000", "gpu * util 0"),
            *(f"proc {index} {pid} auto" for index, pid in enumerate(sorted(pids)[:8])),
        )
        os.environ |= {"LD_LIBRARY_PATH": str(build(Path(folder))), "FAKE_NVML_STATE": str(state.path)}
        measure(server.pid, args)


def _is_rank(pid: int, gpus: Path) -> bool:
    try:
        title = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"scheduler" in title and str(gpus).encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


#: sgmon reads a simulated server's GPUs from a file; beside nvitop it is to read NVML
_WITH_NVML = """
from sgmon.collect.gpu.probe import GpuProbe
from tui_app.cli import main
GpuProbe.read = lambda self: self._read_nvml()
main()
"""


def measure(pid: int, args: argparse.Namespace) -> None:
    """Print CPU seconds a minute (children counted), bytes a second to the terminal, and the ratios."""
    peers = {}
    for interval in ("1", "2"):
        ours = [sys.executable, "-c", _WITH_NVML, "--pid", str(pid), "--interval", interval]
        peers[f"sgmon, {interval} s"] = (ours, lambda seen: b"workers" in seen)
        if args.nvitop:
            peers[f"nvitop, {interval} s"] = ([args.nvitop, "--interval", interval], lambda seen: b"NVITOP" in seen)
    results: dict[str, list[Run]] = {name: [] for name in peers}
    for _ in range(args.rounds):
        for name, (argv, wanted) in peers.items():
            results[name].append(run(argv, wanted, settle_s=SETTLE_S, idle_s=args.seconds))
    print(f"{'':14} {'CPU s/min':>9} {'bytes/s':>8} {'first s':>8}")
    rates = {}
    for name, runs in results.items():
        rates[name] = statistics.median(item.idle_cpu_s / args.seconds * 60 for item in runs)
        out = statistics.median(item.idle_bytes / args.seconds for item in runs)
        first = statistics.median(item.first_s if item.first_s is not None else 99.0 for item in runs)
        print(f"{name:14} {rates[name]:9.2f} {out:8.0f} {first:8.2f}")
    if args.nvitop:
        print(f"sgmon / nvitop at 1 s: {rates['sgmon, 1 s'] / rates['nvitop, 1 s']:.2f}")
    else:
        print("nvitop is not installed: no peer (pip install nvitop)")
    print(f"sgmon at 2 s / at 1 s: {rates['sgmon, 2 s'] / rates['sgmon, 1 s']:.2f}")


if __name__ == "__main__":
    main()
