"""Whether a watched server is ready and nothing of it is wrong: what is dear is then read less often. Pure."""

from __future__ import annotations

from sgmon.model import Event, PortReading, ProcsReading, ServerReading

#: seconds for which the server answers 200 before that counts: what a start has changed last is read as usual
SETTLED_S = 10.0


class Calm:
    """Folds the readings that tell it. A reading that tells otherwise ends the calm at once."""

    def __init__(self) -> None:
        self._ok_since_t: float | None = None
        self._processes_are_well = False
        self._key: tuple[int, int] | None = None

    def observe(self, event: Event) -> bool:
        """Fold one event; whether all is calm."""
        reading = event.reading
        if isinstance(reading, PortReading):
            if reading.answer != "http" or reading.status != 200:
                self._ok_since_t = None
            elif self._ok_since_t is None:
                self._ok_since_t = event.t
        elif isinstance(reading, ProcsReading):
            self._processes_are_well = _are_well(reading)
        elif isinstance(reading, ServerReading):
            key = reading.server.key if reading.server is not None and reading.gone_pid is None else None
            if key != self._key:
                self._key, self._ok_since_t = key, None
        since = self._ok_since_t
        return self._processes_are_well and since is not None and event.t - since >= SETTLED_S


def _are_well(reading: ProcsReading) -> bool:
    """Every process lives, none is stopped, frozen or traced, and none waits for storage."""
    if reading.cgroup_frozen or not reading.processes:
        return False
    return not any(one.gone or one.halted or one.thread_waits or one.state == "D" for one in reading.processes)
