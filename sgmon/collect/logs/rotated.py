"""The files that a rotation has left beside a log (server.log.1, 0.log.20260101-101112), oldest first.

A rotation may go on meanwhile, and gives files other names: they are told apart by device and inode.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import NamedTuple

from sgmon.collect.logs import unpacked
from sgmon.patterns import regex

#: what loggers, logrotate, docker and the kubelet append
_SUFFIX = regex(r"^[.-](?P<age>\d[\dT:-]*Z?)(?P<packed>\.(?:gz|xz|bz2|zst))?$")
_COUNT_DIGITS = 6  # .12 counts rotations, the highest is the oldest; -20260101 is a date
_TRIES = 32
#: the start of a process is known to a second only: btime of /proc/stat has whole seconds (proc(5))
_START_SLACK_S = 1.0


class Rotated(NamedTuple):
    """One file, as it was when it was looked at. They are in order of age, the oldest first: by mtime, which has
    steps of a jiffy (1 to 10 ms: current_time in the kernel's fs/inode.c), and within one by name."""

    mtime_ns: int
    order: int  # less than 0 for a counted one (.12), the least is the oldest
    path: str
    size: int
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
    """The one that follows the file of ``status``; None when there is none."""
    there = sorted(_beside(path))
    own = next((one for one in there if one.identity == (status.st_dev, status.st_ino)), None)
    if own is not None:
        return next((one for one in there if one > own), None)
    return next((one for one in there if one.mtime_ns > status.st_mtime_ns), None)


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
            return unpacked.text_of(fd)
        os.close(fd)
    return None


def _beside(path: str) -> list[Rotated]:
    """All of them, looked at until two looks find the same: one that is renamed during a look may be missed by it,
    and every rotation renames them all."""
    found: dict[tuple[int, int], Rotated] = {}
    before = None
    for _ in range(_TRIES):
        looked = _look(path)
        found.update((one.identity, one) for one in looked)
        names = [(one.path, one.identity) for one in looked]
        if names == before:
            return looked
        before = names
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
            place = os.path.join(folder, other)
            found[identity] = Rotated(status.st_mtime_ns, _order(suffix["age"]), place, status.st_size, identity)
    return list(found.values())


def _order(age: str) -> int:
    return -int(age) if age.isdigit() and len(age) <= _COUNT_DIGITS else 0
