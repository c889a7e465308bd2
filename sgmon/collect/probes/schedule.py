"""Expensive reads are made rarely, and more rarely still where they turn out slow."""

from __future__ import annotations

from collections.abc import Callable, Hashable

#: the share of a second that one kind of read may take of one process, on average
SHARE = 0.004
_STRETCH = 8.0
_STEPS = 8


class Schedule:
    """When which read is due. ``now`` gives seconds; a read that took long is stretched up to eight times.

    interval_s: how often a reading is asked for. Above a second everything else becomes rarer with it.
    """

    def __init__(self, now: Callable[[], float], interval_s: float = 1.0) -> None:
        self._now = now
        self._stretch = max(1.0, interval_s)
        self._due: dict[Hashable, float] = {}

    def run(self, key: Hashable, every_s: float, work: Callable[[], None], spread: int = 0) -> bool:
        """Run ``work`` when ``key`` is due, at once the first time. ``spread`` (a pid) shifts the second time, so
        that the processes of one server do not all come in the same second. True: it ran."""
        start = self._now()
        if start < self._due.get(key, start):
            return False
        first = key not in self._due
        every_s *= self._stretch
        work()
        took = self._now() - start
        wait = min(max(every_s, took / SHARE), every_s * _STRETCH)
        if first and spread:
            wait *= 0.5 + (spread % _STEPS) / (2 * _STEPS)
        self._due[key] = start + wait - 0.1  # reads come once a second: 5.0 s after must not become 6
        return True

    def forget(self, owner: Hashable) -> None:
        """Drop the keys of one process: tuples that begin with ``owner``."""
        for key in [k for k in self._due if isinstance(k, tuple) and k[:1] == (owner,)]:
            del self._due[key]
