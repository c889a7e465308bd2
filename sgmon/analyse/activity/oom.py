"""Kills by the OOM killer, of each control group, since the watch began."""

from __future__ import annotations

from collections.abc import Iterable

from sgmon.model import OomCount

_HOST = ""


class OomKills:
    """The newest and the first count of each group. A group that is seen for the first time later has killed nobody
    that we watched before: it was made, or joined, since."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._now: dict[str, int] = {}

    def add(self, counts: Iterable[OomCount]) -> None:
        for count in counts:
            self._first.setdefault(count.path, count.kills)
            self._now[count.path] = max(count.kills, self._now.get(count.path, 0))

    def since(self, group: str) -> int | None:
        """Kills in the group since it was first seen; None: its count was never read."""
        return self._now[group] - self._first[group] if group and group in self._now else None

    @property
    def host(self) -> int | None:
        """Kills on the whole host since the watch began; None: not known."""
        return self._now[_HOST] - self._first[_HOST] if _HOST in self._now else None
