"""The files that a rotation has left beside a log (server.log.1, 0.log.20260101-101112), oldest first.

A rotation may go on meanwhile, and gives files other names: they are told apart by device and inode.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from typing import NamedTuple

from sgmon.collect.logs import compressed

#: what loggers, logrotate, docker and the kubelet append
_SUFFIX = re.compile(r"^[.-]\d[\dT:-]*Z?(?P<packed>\.(?:gz|xz|bz2))?$")
_TRIES = 8
#: the start of a process is known to a second only: btime of /proc/stat has whole seconds (proc(5))
_START_SLACK_S = 1.0


class Rotated(NamedTuple):
    """One file, as it was when it was looked at."""

    mtime_ns: int
    size: int
    path: str
    identity: tuple[int, int]


def since(path: str, epoch: float, most_bytes: int) -> list[Rotated]:
    """Those that were written to after ``epoch``, the newest that together have at most ``most_bytes``."""
    found: list[Rotated] = []
    first_ns = (epoch - _START_SLACK_S) * 1e9
    for one in sorted((one for one in _beside(path) if one.mtime_ns >= first_ns), reverse=True):
        most_bytes -= one.size
        if most_bytes < 0:
            break
        found.insert(0, one)
    return found


def after(path: str, status: os.stat_result) -> Rotated | None:
    """The oldest that was written to later than the file of ``status``; None when there is none."""
    return min((one for one in _beside(path) if one.mtime_ns > status.st_mtime_ns), default=None)


def opened(look: Callable[[], Rotated | None]) -> int | None:
    """A descriptor of the file that ``look`` names; None when it names none. Its name may lead to another file by
    the time it is opened: then it is looked for again."""
    for _ in range(_TRIES):
        one = look()
        if one is None:
            return None
        try:
            fd = os.open(one.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError:
            continue
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) == one.identity:
            return compressed.text_of(fd, one.path) if one.path.endswith(compressed.SUFFIXES) else fd
        os.close(fd)
    return None


def _beside(path: str) -> list[Rotated]:
    """All of them, looked at until a look finds no other: one that is renamed during a look may be missed by it, and
    every rotation renames them all."""
    found: dict[tuple[int, int], Rotated] = {}
    for _ in range(_TRIES):
        looked = {one.identity: one for one in _look(path)}
        fresh = looked.keys() - found.keys()
        found.update(looked)
        if not fresh:
            break
    return list(found.values())


def _look(path: str) -> list[Rotated]:
    folder, name = os.path.split(path)
    try:
        names = sorted(os.listdir(folder or "."))
    except OSError:
        return []
    there = frozenset(names)
    found: dict[tuple[int, int], Rotated] = {}
    for other in names:
        suffix = _SUFFIX.match(other[len(name) :]) if other.startswith(name) else None
        if suffix is None:
            continue
        if suffix["packed"] and other[: -len(suffix["packed"])] in there:
            continue  # it is being compressed now
        try:
            status = os.stat(os.path.join(folder, other))
        except OSError:
            continue
        identity = (status.st_dev, status.st_ino)
        if stat.S_ISREG(status.st_mode):
            found[identity] = Rotated(status.st_mtime_ns, status.st_size, os.path.join(folder, other), identity)
    return list(found.values())
