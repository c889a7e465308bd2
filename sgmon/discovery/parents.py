"""What stands above the launcher and will end it: coreutils' ``timeout N CMD``."""

from __future__ import annotations

from typing import NamedTuple

from sgmon.discovery.version import started_epoch
from sgmon.proc import stat

#: shells and start scripts may stand between
LEVELS = 8
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
#: options of timeout(1) that take the next word as their value
_WITH_VALUE = ("-k", "--kill-after", "-s", "--signal")


class Timeout(NamedTuple):
    """A running ``timeout``: after ``limit_s`` from ``began_epoch`` it signals the server."""

    pid: int
    limit_s: float
    began_epoch: float | None


def timeout_above(root: str, pid: int) -> Timeout | None:
    """The nearest ``timeout`` among the ancestors, or None. Busybox' own counts in a child, and is not seen."""
    for _ in range(LEVELS):
        try:
            pid = stat.read(root, pid).ppid
            if pid <= 1:
                return None
            limit_s = duration_of(stat.cmdline(root, pid))
            if limit_s:
                return Timeout(pid, limit_s, started_epoch(root, stat.read(root, pid).start_ticks))
        except OSError:
            return None
    return None


def duration_of(argv: tuple[str, ...]) -> float | None:
    """Seconds that a ``timeout`` command line allows; None for another program; 0: for ever."""
    if not argv or argv[0].rsplit("/", 1)[-1] not in ("timeout", "gtimeout"):
        return None
    words = iter(argv[1:])
    for word in words:
        if word in _WITH_VALUE:
            next(words, "")
        elif word == "--":
            return _seconds(next(words, ""))
        elif not word.startswith("-"):
            return _seconds(word)
    return None


def _seconds(word: str) -> float | None:
    """ "90", "1.5h", "10m" as coreutils reads them."""
    factor = _UNITS.get(word[-1:])
    try:
        return float(word[:-1]) * factor if factor else float(word)
    except ValueError:
        return None
