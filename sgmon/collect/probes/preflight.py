"""Facts of a start, read when its server is first seen, and again now and then while it starts."""

from __future__ import annotations

from sgmon.collect.probes.base import Watched
from sgmon.model.preflight import Preflight

#: a fault may be mended while the start goes on; later on everything that is read here has been used
AGAIN_S = 10.0
UNTIL_S = 600.0


class PreflightProbe:
    """Silent while no server with known arguments is there."""

    name = "preflight"
    kind = "preflight"
    interval_s = 1.0
    deadline_s = 20.0

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._key: tuple[int, int] | None = None
        self._first_t = 0.0

    def read(self) -> Preflight | None:
        server, now = self._watched.server, self._watched.clock.now()
        self.interval_s = AGAIN_S if self._watched.calm else 1.0
        if server is None or not server.args_known or server.simulated_gpus:
            return None
        if server.key != self._key:
            self._key, self._first_t = server.key, now
        elif now - self._first_t > UNTIL_S or self._watched.calm:
            return None  # the start is over
        self.interval_s = AGAIN_S
        from sgmon.collect.preflight.read import read  # psutil with it: 10 ms

        return read(self._watched.settings.proc_root, server)

    def close(self) -> None:
        """Nothing is kept open."""
