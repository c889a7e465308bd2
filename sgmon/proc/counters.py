"""Counters: bytes (io), scheduler times (schedstat), states of all threads.

Sources: Documentation/filesystems/proc.rst and Documentation/scheduler/sched-stats.rst of the kernel.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from sgmon.proc import files, stat


class Io(NamedTuple):
    """Bytes since the start of the process. rchar counts read(2) and the like, cached or not (a reaped child's are
    added at once); read_bytes what came from a local block device (0 on FUSE and from a hot cache)."""

    rchar: int
    read_bytes: int
    write_bytes: int


class ThreadTimes(NamedTuple):
    """One thread: on a CPU, and runnable but waiting for one (run queue), in seconds. schedstat: the file's bytes.

    since_t: when it was first seen with these; a later look that finds them unchanged proves that it has slept since.
    wchan: read once for each such sleep; None: not read.
    """

    tid: int
    state: str
    cpu_s: float
    wait_s: float
    schedstat: bytes = b""
    since_t: float = 0.0
    wchan: str | None = None


def io(root: str, pid: int) -> Io:
    """Needs PTRACE_MODE_READ: EACCES for another user's process."""
    found = dict(line.split(b": ") for line in files.small(f"{root}/{pid}/io").splitlines() if b": " in line)
    return Io(
        rchar=int(found.get(b"rchar", 0)),
        read_bytes=int(found.get(b"read_bytes", 0)),
        write_bytes=int(found.get(b"write_bytes", 0)),
    )


def ran_ns(root: str, pid: int) -> int | None:
    """CPU time of a process with all its threads, by its CPU clock (clock_getcpuclockid(3)): unchanged means that no
    thread of it has run. None: not told (gone, a ``root`` that is not this machine's, or a clock that counts in
    steps, as gVisor's)."""
    if root != "/proc":
        return None
    try:
        ran_ns = time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return None
    return ran_ns if ran_ns % 1_000_000 else None


def may_see(root: str, pid: int) -> bool:
    """Whether we have PTRACE_MODE_READ on the process: ``io`` asks for the same right as stat's exit status."""
    try:
        files.small(f"{root}/{pid}/io")
    except OSError:
        return False
    return True


def schedstat(path: str) -> bytes:
    """On CPU and waiting for a CPU in nanoseconds, and how often it ran, of the one thread at ``path``: unchanged
    bytes mean that it has not run. b"" without CONFIG_SCHED_INFO."""
    try:
        return files.small(f"{path}/schedstat")
    except FileNotFoundError:
        return b""


def waited_s(data: bytes) -> float | None:
    """Seconds runnable but waiting for a CPU, from ``schedstat``; None: not told."""
    parts = data.split()
    return int(parts[1]) / 1e9 if len(parts) > 1 else None


def threads(root: str, pid: int, known: Mapping[int, ThreadTimes] | None = None, t: float = 0.0) -> list[ThreadTimes]:
    """All live threads at time ``t``. A thread that ends while we look is left out. ``known``: an earlier look; a
    thread that slept then and has not run since is in the same state: its stat (8 us of kernel time) is not read, and
    the kernel function that it sleeps in is read once."""
    base = f"{root}/{pid}/task"
    before = known or {}
    found = []
    for name in os.listdir(base):
        try:
            tid = int(name)
            data = schedstat(f"{base}/{name}")  # before stat: what is newer than it can then only be the state
            old = before.get(tid)
            if old is not None and data and old.schedstat == data and old.state != "R":
                found.append(old if old.wchan is not None else old._replace(wchan=_wchan_of(f"{base}/{name}")))
                continue
            seen = stat.parse(files.small(f"{base}/{name}/stat"))
        except OSError as err:
            if files.is_gone(err):
                continue
            raise
        except ValueError:
            continue
        found.append(_times(tid, seen, data, t))
    return found


def _times(tid: int, seen: stat.Stat, data: bytes, t: float) -> ThreadTimes:
    parts = data.split()
    if len(parts) < 2:
        return ThreadTimes(tid, seen.state, seen.cpu_s, 0.0, since_t=t)
    return ThreadTimes(tid, seen.state, int(parts[0]) / 1e9, int(parts[1]) / 1e9, data, t)


def states(seen: list[ThreadTimes]) -> tuple[tuple[str, int], ...]:
    """How many threads are in which state, most frequent first."""
    return tuple(Counter(t.state for t in seen).most_common())


def wchan(root: str, pid: int) -> str:
    """The kernel function a sleeping task waits in; "" for "0": running, or hidden (no error tells the two apart)."""
    return _wchan(f"{root}/{pid}")


def _wchan(path: str) -> str:
    name = files.small(f"{path}/wchan").decode("ascii", "replace").strip()
    return "" if name == "0" else name


def _wchan_of(path: str) -> str:
    """The same of one thread; "" where it may not be read."""
    try:
        return _wchan(path)
    except OSError:
        return ""


def kernel_stack(root: str, pid: int | str, limit: int = 12) -> tuple[str, ...]:
    """Function names of /proc/PID/stack ("PID/task/TID" for a thread), innermost first. Needs CAP_SYS_ADMIN."""
    lines = files.text(f"{root}/{pid}/stack").splitlines()
    return tuple(line.split()[1].partition("+")[0] for line in lines[:limit] if len(line.split()) > 1)
