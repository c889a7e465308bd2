"""Expensive reads are made rarely, and more rarely still where they turn out slow or nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable, Hashable

#: the share of a second that one kind of read may take of one process, on average
SHARE = 0.004
#: how much rarer a read is while all is calm, where it may be
CALM = 4.0
_STRETCH = 8.0
_STEPS = 8


class Schedule:
    """When which read is due. ``now`` gives seconds; a read that took long is stretched up to eight times.

    interval_s: how often a reading is asked for. Above a second everything else becomes rarer with it.
    is_calm: whether nothing is wrong; at the end of the calm every read is due that would have been without it.
    """

    def __init__(
        self, now: Callable[[], float], interval_s: float = 1.0, is_calm: Callable[[], bool] = lambda: False
    ) -> None:
        self._now = now
        self._stretch = max(1.0, interval_s)
        self._is_calm = is_calm
        self._next: dict[Hashable, tuple[float, float]] = {}  # when it ran last, and the pause after it

    def run(
        self, key: Hashable, every_s: float, work: Callable[[], None], spread: int = 0, calm_times: float = 1.0
    ) -> bool:
        """Run ``work`` when ``key`` is due, at once the first time. ``spread`` (a pid) shifts the second time, so
        that the processes of one server do not all come in the same second. calm_times: how much longer the pause
        is while all is calm. True: it ran."""
        start = self._now()
        last = self._next.get(key)
        if last is not None and start < last[0] + last[1] * (calm_times if self._is_calm() else 1.0) - 0.1:
            return False  # reads come once a second: 5.0 s after must not become 6
        every_s *= self._stretch
        work()
        took = self._now() - start
        wait = min(max(every_s, took / SHARE), every_s * _STRETCH)
        if last is None and spread:
            wait *= 0.5 + (spread % _STEPS) / (2 * _STEPS)
        self._next[key] = (start, wait)
        return True

    def forget(self, owner: Hashable) -> None:
        """Drop the keys of one process: tuples that begin with ``owner``."""
        for key in [k for k in self._next if isinstance(k, tuple) and k[:1] == (owner,)]:
            del self._next[key]
