"""How cost grows: ranks, hosts, processes of the host, threads of a worker, size of the log.

The peer of a size is a smaller one in the same round. A ratio equal to that of the sizes is a straight line.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import server
from benchmarks.registry import Group, Options, Round, Values, in_turns, rows_of
from benchmarks.rows import opening

RANKS, HOSTS, PROCESSES, THREADS = (1, 8, 64, 512), (1, 8, 64), (100, 5_000), (10, 1_000)
LOGS = (10, 100, 1_000)  # MB
LOOKS = 20


def _apart(code: str, *words: str) -> Callable[[], Values]:
    """Values that a program of its own prints as JSON, so that none pays for another's memory."""

    def measure() -> Values:
        done = subprocess.run(
            [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True, check=True, timeout=600
        )
        values: Values = json.loads(done.stdout)
        return values

    return measure


#: the store with the garbage collector as the command sets it
NODES = """
import gc, json, sys
from benchmarks.nodes import measure
from tui_app.cli import GC_THRESHOLD
gc.set_threshold(*GC_THRESHOLD)
found = measure(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
print(json.dumps({"CPU s/s": found["CPU s/s"], "tick ms": found["tick ms, median"], "MiB": found["MiB"]}))
"""


@contextmanager
def ranks(options: Options) -> Iterator[Round]:
    """Through the store of the watch: no process is there, nothing is read."""
    seconds = "30" if options.quick else "60"
    yield in_turns({f"{count}": _apart(NODES, "1", str(count), seconds) for count in RANKS})


@contextmanager
def hosts(options: Options) -> Iterator[Round]:
    seconds = "30" if options.quick else "60"
    yield in_turns({f"{count}": _apart(NODES, str(count), "8", seconds) for count in HOSTS})


PROC = """
import json, sys, time
from sgmon.collect.probes.base import Clock, Watched
from sgmon.collect.probes.procs import ProcsProbe
from sgmon.discovery.find import find
from sgmon.settings import Settings
root, looks = sys.argv[1], int(sys.argv[2])
settings = Settings(proc_root=root)
began = time.process_time()
server = find(root, settings).server
first = time.process_time() - began
watched = Watched(settings, Clock())
watched.server = server
probe = ProcsProbe(watched)
probe.read()
began = time.process_time()
for _ in range(looks):
    probe.read()
print(json.dumps({"CPU s, first look": first, "CPU ms, a look": (time.process_time() - began) / looks * 1000}))
"""


@contextmanager
def processes(options: Options) -> Iterator[Round]:
    """Trees of files in memory with the shapes of /proc: a server of eight ranks among so many other processes."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="sgmon-bench-", dir=memory if memory.is_dir() else None) as folder:
        trees = {f"{count}": _tree(Path(folder) / f"{count}", count) for count in PROCESSES}
        yield in_turns({name: _apart(PROC, root, str(LOOKS)) for name, root in trees.items()})


def _tree(folder: Path, count: int) -> str:
    from tests.proc.fake import FakeProc, stat_line

    fake = FakeProc(folder)
    argv = ["python", "-m", "sglang.launch_server", "--model-path", "/models/72b", "--tp-size", "8"]
    fake.add(100, argv, start=1000)
    for rank in range(8):
        fake.add(110 + rank, f"sglang::scheduler_TP{rank}", ppid=100, start=2000 + rank)
    for pid in range(1000, 1000 + count - 10):  # what a look reads of a process that is no server's
        (fake.root / str(pid)).mkdir()
        (fake.root / str(pid) / "stat").write_bytes(stat_line(pid, "worker", "S", 1, 1, pid * 10))
        (fake.root / str(pid) / "cmdline").write_text(f"/usr/bin/worker\0{pid}\0")
    return str(fake.root)


WORKERS = """
import json, sys, time
from sgmon.collect.probes.base import Clock, Watched
from sgmon.collect.probes.procs import ProcsProbe
from sgmon.discovery.find import find
from sgmon.settings import Settings
settings = Settings(pid=int(sys.argv[1]))
watched = Watched(settings, Clock())
watched.server = find("/proc", settings).server
probe = ProcsProbe(watched)
probe.read()
began, cpu, looks = time.monotonic(), time.process_time(), 0
while time.monotonic() - began < float(sys.argv[2]):
    probe.read()
    looks += 1
    time.sleep(max(0.0, began + looks - time.monotonic()))
print(json.dumps({"CPU ms/s": (time.process_time() - cpu) / (time.monotonic() - began) * 1000}))
"""


@contextmanager
def threads(options: Options) -> Iterator[Round]:
    """The probe of the processes once a second, on eight real workers."""
    seconds = "10" if options.quick else "20"
    with server.serving(threads=THREADS[0]) as few, server.serving(threads=THREADS[1]) as many:
        yield in_turns(
            {
                f"{count}": _apart(WORKERS, str(one.pid), seconds)
                for count, one in zip(THREADS, (few, many), strict=True)
            }
        )


@contextmanager
def logs(options: Options) -> Iterator[Round]:
    """The whole dashboard until the last line is shown, and until the log is indexed."""
    with tempfile.TemporaryDirectory(prefix="sgmon-bench-") as folder:
        paths = [Path(folder) / f"{size}.log" for size in LOGS[: 2 if options.quick else 3]]
        for path, size in zip(paths, LOGS, strict=False):
            opening.generate(path, size * 1_000_000)
        with server.serving(threads=4) as target:
            ours = [sys.executable, "-m", "tui_app.cli", "--pid", str(target.pid), "--log"]
            time.sleep(0.1)
            yield in_turns({path.stem: opening.viewer([*ours, str(path)]) for path in paths})


GROUPS = (
    Group(
        "ranks", "ranks, in the store", rows_of("ranks", "8/1, 64/8, 512/64", "CPU s/s", "tick ms"), ranks, warm=False
    ),
    Group(
        "hosts",
        "hosts of 8 ranks, in the store",
        rows_of("hosts", "8/1, 64/8", "CPU s/s", "tick ms"),
        hosts,
        warm=False,
    ),
    Group(
        "processes",
        "processes of the host",
        rows_of("processes", "5000/100", "CPU s, first look", "CPU ms, a look"),
        processes,
        warm=False,
    ),
    Group("threads", "threads of each of 8 workers", rows_of("threads", "1000/10", "CPU ms/s"), threads, warm=False),
    Group(
        "log-size", "MB of the log", rows_of("log-size", "100/10, 1000/100", "s", "CPU s at rest"), logs, warm=False
    ),
)
