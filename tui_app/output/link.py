"""Whether the terminal keeps up: one frame is on its way at a time, and the next waits for the terminal's answer.

Each frame ends with a question (where is the cursor?) that a terminal answers when it has painted it. Over a slow
line the answer comes late, and so do frames: what changed in the meantime goes in one. The clock is the caller's.
"""

from __future__ import annotations

from collections import deque

#: longest wait for an answer, in seconds: of a terminal that has answered before, and of one that has not
LOST_S, SILENT_S = 10.0, 0.7
#: from this round trip on the line is called slow, and half of the time is left to keys
SLOW_S = 0.4
_WEIGHT = 0.3
#: below this many bytes a second a page takes a third of a second and more, and each byte counts; and frames that
#: answer no key are not more on any line: what is painted in pieces goes in one
THIN_RATE = 16_000
#: longest rest behind a large frame
_REST_S = 0.5
#: from this rate on a thin line is thin no more
QUICK_RATE = 2 * THIN_RATE
#: frames in a row, of either kind, that change it
_IN_A_ROW = 2
#: frames from which the rate is taken: of shorter ones most of the time is the way itself
LEAST_BYTES = 400
#: frames from which a thin line may be called quick: a line often takes some hundred bytes at once, and then few
ENOUGH_BYTES = 1500
#: answers of which the quickest is the way itself
_LATE_ANSWERS = 50
#: shorter times are not told apart
_CLOCK_S = 0.001
#: seconds until the rate of a thin line is taken again: the first time, at most, and when it was quick the last time
_AGAIN_S, _SELDOM_S, _SOON_S = 10.0, 120.0, 1.0


class Link:
    """round_trip_s: of late, None before the first answer. rate: bytes a second when it was not quick last."""

    def __init__(self) -> None:
        self.round_trip_s: float | None = None
        self.rate: float | None = None
        self.is_thin = False
        self._in_a_row = 0  # frames that say it is not as it is called
        self._again_s = _AGAIN_S
        self._again_t = 0.0
        self._answers: deque[float] = deque(maxlen=_LATE_ANSWERS)
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

    def lacks(self, t: float, size: int) -> int:
        """Bytes without effect to add to a frame of ``size``, so that the rate can be taken from it. Only now and
        then and on a thin line: it may have been the machine that was busy when the rate was taken."""
        return max(0, ENOUGH_BYTES - size) if self.is_thin and t >= self._again_t else 0

    def sent(self, t: float, size: int) -> None:
        """A frame of ``size`` bytes and the question were sent."""
        self._rest_until_t = t + min(_REST_S, size / THIN_RATE) if size >= LEAST_BYTES else 0.0
        if not self._is_silent:
            self._asked_t = t
            self._sent_bytes = size

    def answered(self, t: float) -> None:
        """The terminal has painted what it was sent."""
        asked_t = self._silent_since_t if self._asked_t is None else self._asked_t
        if asked_t is None:
            return
        took = t - asked_t
        self._measure_rate(t, took)
        self._is_silent, self._silent_since_t = False, None
        known = self.round_trip_s
        self.round_trip_s = took if known is None else known + _WEIGHT * (took - known)
        self._asked_t = None
        if took >= SLOW_S:
            self._rest_until_t = t + min(3.0, took)

    def _measure_rate(self, t: float, took: float) -> None:
        self._answers.append(took)
        if self._sent_bytes < LEAST_BYTES:
            return
        rate = self._sent_bytes / max(_CLOCK_S, took - min(self._answers))
        if self.is_thin and rate >= THIN_RATE and self._sent_bytes < ENOUGH_BYTES:
            return
        if rate < QUICK_RATE:
            self.rate = rate
        was_due = self.is_thin and t - took >= self._again_t
        is_other = rate >= QUICK_RATE if self.is_thin else rate < THIN_RATE
        self._in_a_row = self._in_a_row + 1 if is_other else 0
        if self._in_a_row >= _IN_A_ROW:
            self.is_thin = not self.is_thin
            self._in_a_row = 0
        elif self.is_thin and is_other:
            self._again_t = t + _SOON_S
            return
        if self.is_thin:
            if was_due:
                self._again_s = min(_SELDOM_S, 2 * self._again_s)
            self._again_t = t + self._again_s

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
        """ "slow link: 1.3 s" or "slow link: 6.3 KB/s"; "" on a quick one."""
        if self.is_slow and self.round_trip_s is not None:
            return f"slow link: {self.round_trip_s:.1f} s"
        return f"slow link: {self.rate / 1000:.2g} KB/s" if self.is_thin and self.rate is not None else ""
