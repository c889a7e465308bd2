"""What a look costs with psutil and with our own readers of /proc, in the same process: milliseconds of CPU a look.

python -m benchmarks.psutil_cost [--workers 8] [--threads 200] [--processes 300]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable

import psutil

from sgmon.discovery import tree
from sgmon.proc import counters, fds, sock_diag, stat, status

_WORKER = """
import sys, threading
for _ in range(int(sys.argv[1]) - 1):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print(flush=True)
sys.stdin.read()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--processes", type=int, default=300)
    args = parser.parse_args()
    argv = [sys.executable, "-S", "-c", _WORKER, str(args.threads)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    workers = [subprocess.Popen(argv, **pipes) for _ in range(args.workers)]
    for worker in workers:
        worker.stdout.readline()
    others = [subprocess.Popen(["sleep", "600"]) for _ in range(max(0, args.processes - len(psutil.pids())))]
    try:
        compare([worker.pid for worker in workers])
    finally:
        for process in (*workers, *others):
            process.kill()
            process.wait()


def compare(pids: list[int]) -> None:
    known = [psutil.Process(pid) for pid in pids]
    count = len(psutil.pids())
    rows: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        (f"{len(pids)} workers: state, CPU time, memory by kind, bytes", lambda: deep(known), lambda: own_deep(pids)),
        (f"{len(pids)} workers: all threads", lambda: [p.threads() for p in known], lambda: own_threads(pids)),
        (f"{len(pids)} workers: all threads, idle since", lambda: [p.threads() for p in known], again(pids)),
        (f"{len(pids)} workers: descriptors", lambda: [p.open_files() for p in known], lambda: own_fds(pids)),
        (
            f"the tree below one of {count} processes",
            lambda: psutil.Process(1).children(True),
            lambda: tree.scan("/proc"),
        ),
        (f"argv of {count} processes", lambda: list(psutil.process_iter(["ppid", "cmdline"])), own_argvs),
        (
            "TCP sockets of the host",
            lambda: psutil.net_connections("tcp"),
            lambda: sock_diag.rows(sock_diag.WITH_INODE),
        ),
        ("boot time", psutil.boot_time, lambda: stat.boot_epoch("/proc")),
    ]
    print(f"{'ms of CPU a look':58} {'psutil':>8} {'ours':>8}")
    for what, theirs, ours in rows:
        print(f"{what:58} {cost_ms(theirs):8.2f} {cost_ms(ours):8.2f}")
    for name in ("virtual_memory", "net_if_stats", "disk_partitions", "users"):
        print(f"{'host: ' + name:58} {cost_ms(getattr(psutil, name)):8.2f} {'-':>8}")


def deep(known: list[psutil.Process]) -> None:
    for process in known:
        with process.oneshot():
            process.status(), process.cpu_times(), process.memory_info(), process.num_threads(), process.uids()
            process.io_counters()


def own_deep(pids: list[int]) -> None:
    for pid in pids:
        stat.read("/proc", pid), status.read("/proc", pid), counters.io("/proc", pid)


def own_threads(pids: list[int]) -> None:
    for pid in pids:
        counters.threads("/proc", pid)


def again(pids: list[int]) -> Callable[[], object]:
    """Looks after a first one, which know what it saw."""
    known = {pid: {each.tid: each for each in counters.threads("/proc", pid)} for pid in pids}
    return lambda: [counters.threads("/proc", pid, known[pid]) for pid in pids]


def own_fds(pids: list[int]) -> None:
    for pid in pids:
        fds.read("/proc", pid)


def own_argvs() -> None:
    for pid in tree.scan("/proc"):
        try:
            stat.cmdline("/proc", pid)
        except OSError:
            continue


def cost_ms(work: Callable[[], object]) -> float:
    """The cheapest of three series: a loaded machine only adds."""
    best = float("inf")
    for _ in range(3):
        start, count = time.process_time(), 0
        while time.process_time() - start < 0.15:
            work()
            count += 1
        best = min(best, (time.process_time() - start) / count)
    return best * 1000


if __name__ == "__main__":
    main()
