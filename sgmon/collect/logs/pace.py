"""When new text of a log is read: at once after silence, gathered while it keeps coming."""

from __future__ import annotations

from msgspec import Struct, field

#: readings that may follow one another before text is gathered
EARLY = 3
#: seconds of text in one reading while it keeps coming: more than a screenful mostly, and each reading is a frame
GATHER_S = 1.0
#: text is at rest when none has come for so long; then it is read, so that the last line is not late
SETTLED_S = 0.1
#: seconds between two readings at least, once text is gathered
LEAST_S = 0.25
#: how often the size is looked at while text waits to be read
POLL_S = 0.03


class Pace(Struct):
    """Of one log. Knows no clock; t: seconds, never backwards."""

    _credit: float = field(default_factory=lambda: EARLY)
    _size: int = -1
    _grown_t: float = 0.0
    _asked_t: float = 0.0
    _read_t: float = 0.0

    def waits(self, t: float, size: int) -> bool:
        """Whether the text up to ``size`` is left for later; then it is asked again after ``POLL_S``."""
        if size != self._size:
            self._size, self._grown_t = size, t
        self._credit = min(EARLY, self._credit + (t - self._asked_t) / GATHER_S)
        self._asked_t = t
        if self._credit >= 1:
            self._credit -= 1
        elif t - self._read_t < LEAST_S or t - self._grown_t < SETTLED_S:
            return True
        self._read_t = t
        return False
