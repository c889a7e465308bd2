"""How much of a log was written before the server began: by earlier starts, whose errors are not its own."""

from __future__ import annotations

import os
import time
from collections import deque
from pathlib import Path

from sgmon.collect.logs.opening import identity_of
from sgmon.model import Server
from sgmon.proc import mounts, stat

_KEPT = 512  # looks that brought text: minutes of them, and a server is found within seconds


class History:
    """What was read of a file up to when."""

    def __init__(self) -> None:
        self._read: deque[tuple[float, str, int]] = deque(maxlen=_KEPT)

    def add(self, epoch: float, identity: str, offset: int) -> None:
        """The file had so many bytes at this time."""
        self._read.append((epoch, identity, offset))

    def before(self, server: Server, root: Path, status: os.stat_result, now: float) -> int:
        """Bytes of the file that were there before the server began, as far as that can be proved: all, where nothing
        was written since; else what had been read by then. now: as the times of ``add``, which go on evenly where the
        wall clock, which dates the file, is set."""
        age_s = _age_s(server, root)
        if age_s is None:
            return 0
        if status.st_mtime < time.time() - age_s and not _is_remote(status):
            return status.st_size
        own = [size for epoch, its, size in self._read if its == identity_of(status) and epoch < now - age_s]
        return max((size for size in own if size <= status.st_size), default=0)


def _age_s(server: Server, root: Path) -> float | None:
    """Seconds since the process of the launcher began. The boot time of /proc/stat has whole seconds; the clocks of
    this machine know it better."""
    if server.started_epoch is None:
        return None
    if str(root) != "/proc":
        return time.time() - server.started_epoch
    return time.clock_gettime(time.CLOCK_BOOTTIME) - server.start_ticks / stat.HZ


def _is_remote(status: os.stat_result) -> bool:
    """Whether another machine's clock dates the file; True where that is not known."""
    device = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    try:
        return all(mount.remote for mount in mounts.read("/proc") if mount.device == device)
    except OSError:
        return True
