"""When the processes of the server's tree are read: each interval, and soon again after an end."""

from __future__ import annotations

from sgmon.collect.probes.base import Watched
from sgmon.collect.probes.process_tree import Tree
from sgmon.model import ProcsReading

#: a look that has seen a process end is followed by another after this: which ended first, and whether all were asked
#: to, may show in what ends next
AFTER_END_S = 0.3


class ProcsProbe:
    """Follows one server; a new one (another pid or start) begins anew. A worker that ended is kept, marked gone."""

    name = "procs"
    kind = "procs"
    deadline_s = 5.0

    def __init__(self, watched: Watched) -> None:
        self.interval_s = watched.settings.interval_s
        self._watched = watched
        self._tree: Tree | None = None

    def read(self) -> ProcsReading | None:
        server = self._watched.server
        if server is None:
            return None
        tree = self._tree
        if tree is None or tree.key != server.key:
            self.close()
            tree = self._tree = Tree(self._watched, server)
        reading = tree.read(server)
        self.interval_s = self._next_s(tree.has_ended)
        return reading

    def _next_s(self, has_ended: bool) -> float:
        """Seconds until the next look; those after an end come in between the others."""
        asked_s = self._watched.settings.interval_s
        if has_ended:
            return min(AFTER_END_S, asked_s)
        return asked_s - AFTER_END_S if self.interval_s == AFTER_END_S < asked_s else asked_s

    def close(self) -> None:
        if self._tree is not None:
            self._tree.close()
            self._tree = None
