"""What a collector costs on the machine that it runs on, and what it sends: a simulated TP8 server, one watch.

``python -m benchmarks.collector [--python PYTHON3.8] [--seconds 40]``. CPU is of the collector and its children.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from pathlib import Path

from sgmon import demo
from sgmon.collect.probes.base import Clock
from sgmon.model import Event, NodeReading
from sgmon.remote import packing
from sgmon.remote.hosts import reach
from sgmon.remote.source import RemoteSource
from sgmon.settings import Settings

SETTLED_S = 15.0
_TICK = os.sysconf("SC_CLK_TCK")


def collectors() -> list[int]:
    """Processes that were started for this benchmark: a collector and the children of it."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"SGMON_BENCHMARK={os.getpid()}".encode() in environ.read_bytes():
                found.append(int(environ.parent.name))
        except OSError:
            continue
    return found


def cpu_s(pids: list[int]) -> float:
    """User and system time of these processes."""
    total = 0
    for pid in pids:
        try:
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(words[11]) + int(words[12])
    return total / _TICK


def resident_bytes(pids: list[int]) -> int:
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") for pid in pids)


class Watched:
    """A source that runs in a thread, and what came of it."""

    def __init__(self, source: RemoteSource) -> None:
        self.first_ranks_t: float | None = None
        self.link: NodeReading | None = None
        self._source = source
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        for event in self._source:
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event.reading, NodeReading):
            self.link = event.reading
        elif event.kind == "procs" and self.first_ranks_t is None:
            self.first_ranks_t = self._source.clock.now()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default="python3")
    parser.add_argument("--seconds", type=float, default=40.0)
    args = parser.parse_args()
    began = time.monotonic()
    size = len(packing.archive())
    print(f"archive: {size} bytes, made in {time.monotonic() - began:.2f} s")
    with demo.start("stuck-rank", speed=15.0) as server:
        time.sleep(8.0)
        place = reach("far", f"env SGMON_BENCHMARK={os.getpid()} NAME={{}}", args.python)
        source = RemoteSource(place, Settings(pid=server.pid), Clock())
        watched = Watched(source)
        time.sleep(SETTLED_S)
        pids = collectors()
        start_s = cpu_s(pids)
        time.sleep(args.seconds)
        used = cpu_s(pids) - start_s
        link = watched.link
        assert link is not None
        print(f"python {link.python}: first picture after {watched.first_ranks_t:.2f} s")
        print(
            f"CPU: {start_s:.2f} s in the first {SETTLED_S:.0f} s, then {used / args.seconds * 100:.2f} % of a core"
        )
        print(
            f"sent: {link.bytes_per_s:.0f} bytes/s; memory: {resident_bytes(pids) / 2**20:.1f} MiB in {len(pids)} processes"
        )
        source.stop()


if __name__ == "__main__":
    main()
