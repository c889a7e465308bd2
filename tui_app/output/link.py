"""Whether the terminal keeps up: one frame is on its way at a time, and the next waits for the terminal's answer.

Each frame ends with a question (where is the cursor?) that a terminal answers when it has painted it. Over a slow
line the answer comes late, and so do frames: what changed in the meantime goes in one. The clock is the caller's.
"""

from __future__ import annotations

#: longest wait for an answer, in seconds: of a terminal that has answered before, and of one that has not
LOST_S, SILENT_S = 10.0, 0.7
#: from this round trip on the line is called slow, and half of the time is left to keys
SLOW_S = 0.4
_WEIGHT = 0.3
#: below this many bytes a second a page takes a third of a second and more, and each byte counts
THIN_RATE = 16_000
#: frames from which the rate is taken: of shorter ones most of the time is the way itself
_LEAST_BYTES = 400


class Link:
    """round_trip_s: of late, None before the first answer."""

    def __init__(self) -> None:
        self.round_trip_s: float | None = None
        self._thin_frames = 0
        self._shortest_s: float | None = None
        self._sent_bytes = 0
        self._asked_t: float | None = None
        self._rest_until_t = 0.0
        self._is_silent = False  # it has not answered the first question (yet)
        self._silent_since_t: float | None = None

    @property
    def question(self) -> str:
        """What to send behind a frame."""
        return "" if self._is_silent else "\x1b[6n"

    @property
    def is_slow(self) -> bool:
        return self.round_trip_s is not None and self.round_trip_s >= SLOW_S

    @property
    def is_thin(self) -> bool:
        """Whether few bytes a second came through, twice. It stays so: looks that change with the link cost bytes."""
        return self._thin_frames >= 2

    def sent(self, t: float, size: int) -> None:
        """A frame of ``size`` bytes and the question were sent."""
        if not self._is_silent:
            self._asked_t = t
            self._sent_bytes = size

    def answered(self, t: float) -> None:
        """The terminal has painted what it was sent."""
        asked_t = self._silent_since_t if self._asked_t is None else self._asked_t
        if asked_t is None:
            return
        took = t - asked_t
        self._measure_rate(took)
        self._is_silent, self._silent_since_t = False, None
        known = self.round_trip_s
        self.round_trip_s = took if known is None else known + _WEIGHT * (took - known)
        self._asked_t = None
        self._rest_until_t = t + min(3.0, took) if took >= SLOW_S else 0.0

    def _measure_rate(self, took: float) -> None:
        self._shortest_s = took if self._shortest_s is None else min(took, self._shortest_s)
        beyond_s = took - self._shortest_s
        if self._sent_bytes >= _LEAST_BYTES and beyond_s > 0 and self._sent_bytes / beyond_s < THIN_RATE:
            self._thin_frames += 1

    def wait_s(self, t: float, *, is_urgent: bool) -> float:
        """Seconds until a frame may be sent, at the latest; 0: now. is_urgent: a key was pressed."""
        if self._asked_t is not None:
            limit = SILENT_S if self.round_trip_s is None else LOST_S
            left = self._asked_t + limit - t
            if left > 0:
                return left
            self._is_silent = self.round_trip_s is None
            self._silent_since_t = self._asked_t if self._is_silent else None
            self._asked_t = None
        return 0.0 if is_urgent else max(0.0, self._rest_until_t - t)

    @property
    def words(self) -> str:
        """ "slow link: 1.3 s"; "" on a quick one."""
        return f"slow link: {self.round_trip_s:.1f} s" if self.is_slow and self.round_trip_s is not None else ""
