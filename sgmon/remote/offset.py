"""The clocks of two machines, compared by round trips over the pipe that also carries the readings. Pure."""

from __future__ import annotations

from collections import deque

from msgspec import Struct

#: of so many round trips the shortest counts: it was delayed least
KEPT = 16


class RoundTrip(Struct, frozen=True):
    """took_s: there and back. zero: what the far monotonic clock showed when the watch began. wall_s: the far wall
    clock minus ours."""

    took_s: float
    zero: float
    wall_s: float


class ClockOffset:
    """Feed it round trips."""

    def __init__(self, epoch: float) -> None:
        self._epoch = epoch
        self._trips: deque[RoundTrip] = deque(maxlen=KEPT)

    def add(self, sent_t: float, came_t: float, clock: float, wall: float) -> None:
        """sent_t, came_t: seconds of the watch; clock, wall: the far clocks between them."""
        middle = (sent_t + came_t) / 2
        self._trips.append(RoundTrip(came_t - sent_t, clock - middle, wall - (self._epoch + middle)))

    @property
    def best(self) -> RoundTrip | None:
        """The shortest of the newest round trips; its error is at most half of what it took."""
        return min(self._trips, key=lambda trip: trip.took_s, default=None)
