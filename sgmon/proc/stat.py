"""/proc/PID/stat and /proc/PID/cmdline. Field numbers as in proc_pid_stat(5)."""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

from sgmon.proc import files

#: clock ticks per second: the unit of utime, stime and starttime
HZ = os.sysconf("SC_CLK_TCK")


class Stat(NamedTuple):
    """What sgmon uses of stat; times in seconds, ``start_ticks`` in clock ticks since boot."""

    pid: int
    comm: str
    state: str
    ppid: int
    majflt: int
    cpu_s: float  # utime + stime: all threads, also those that have ended
    threads: int
    start_ticks: int
    exit_status: int  # field 52, wait(2) form; 0 also when it is hidden from us
    session: int = 0  # of setsid(2); a daemon's children keep it, whoever adopts them


def parse(data: bytes) -> Stat:
    """comm stands between the first "(" and the last ")", and may hold both itself. ValueError: not a stat line."""
    opening = data.index(b"(")
    closing = data.rindex(b")")
    rest = data[closing + 2 :].split()
    if len(rest) < 20:
        raise ValueError("stat line is too short")
    return Stat(
        pid=int(data[:opening]),
        comm=data[opening + 1 : closing].decode("utf-8", "replace"),
        state=rest[0].decode("ascii", "replace"),
        ppid=int(rest[1]),
        majflt=int(rest[9]),
        cpu_s=(int(rest[11]) + int(rest[12])) / HZ,
        threads=int(rest[17]),
        start_ticks=int(rest[19]),
        exit_status=int(rest[49]) if len(rest) > 49 else 0,
        session=int(rest[3]),
    )


def read(root: str, pid: int) -> Stat:
    """Raises OSError. ENOENT, ESRCH: gone. EIO: what was read is no stat line, twice; that tells of no end, since the
    kernel answers ESRCH where the process ended while it was read."""
    path = f"{root}/{pid}/stat"
    try:
        return parse(files.small(path))
    except ValueError:
        pass
    try:
        return parse(files.small(path))
    except ValueError as err:
        raise OSError(errno.EIO, str(err), path) from None


def cmdline(root: str, pid: int) -> tuple[str, ...]:
    """The argv; one element (padding cut off) when the title was set; () for kernel threads and zombies."""
    return split(files.read(f"{root}/{pid}/cmdline"))


def split(data: bytes) -> tuple[str, ...]:
    """The text of cmdline as words."""
    data = data.rstrip(b"\0 ")
    return tuple(part.decode("utf-8", "replace") for part in data.split(b"\0")) if data else ()


def pids(root: str) -> list[int]:
    """All process ids visible below ``root``."""
    return pids_among(os.listdir(root))


def pids_among(names: list[str]) -> list[int]:
    """The process ids among the names in a /proc."""
    return [int(name) for name in names if name.isdigit()]


def boot_epoch(root: str) -> float | None:
    """Wall clock at boot (btime in /proc/stat), seconds; start_ticks / HZ counts from it."""
    try:
        for line in files.read(f"{root}/stat").splitlines():
            if line.startswith(b"btime "):
                return float(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return None
