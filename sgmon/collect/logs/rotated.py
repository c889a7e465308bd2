"""The files that a rotation has left beside a log (server.log.1, 0.log.20260101-101112), oldest first."""

from __future__ import annotations

import os
import re
import stat

#: what loggers, logrotate, docker and the kubelet append; compressed ones are not read
_SUFFIX = re.compile(r"^[.-]\d[\dT:-]*Z?$")


def since(path: str, epoch: float, most_bytes: int) -> list[str]:
    """Those that were written to after ``epoch``, the newest that together have at most ``most_bytes``."""
    found: list[str] = []
    for _, size, name in sorted((one for one in _beside(path) if one[0] >= epoch * 1e9), reverse=True):
        most_bytes -= size
        if most_bytes < 0:
            break
        found.insert(0, name)
    return found


def after(path: str, status: os.stat_result) -> str:
    """The oldest that was written to later than the file of ``status``; "" when there is none."""
    later = [one for one in _beside(path) if one[0] > status.st_mtime_ns]
    return min(later)[2] if later else ""


def _beside(path: str) -> list[tuple[int, int, str]]:
    """(mtime in ns, size, path) of each."""
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    found = []
    for other in names:
        if not other.startswith(name) or not _SUFFIX.match(other[len(name) :]):
            continue
        try:
            status = os.stat(os.path.join(folder, other))
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            found.append((status.st_mtime_ns, status.st_size, os.path.join(folder, other)))
    return found
