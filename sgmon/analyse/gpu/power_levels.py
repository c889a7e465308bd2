"""What a card's own utilisation and power tell: idle, at work, or spinning in a collective.

Measured on H200s: a rank that waits in a NCCL collective holds its card at 100 % with power constant to 1-2 W, near
the idle level (123-167 W beside 120-128 W idle and 270-540 W at work); work moves by tens of watts.
"""

from __future__ import annotations

from collections import deque

from sgmon.model import Gpu, GpuLoad

#: percent of utilisation in every sample that counts as pinned, and at most which it is idle
UTIL_PINNED = 98
UTIL_IDLE = 5
#: watts: at most this range is flat, and from this on it moves
POWER_FLAT_W = 3.0
POWER_RANGE_W = 8.0
#: power over the card's own idle level that only work draws
POWER_WORK = 1.6
#: bytes in use that mean a context is there
CONTEXT_BYTES = 400 * 1024 * 1024
WINDOW_S = 10.0
MIN_SAMPLES = 5
IDLE_SAMPLES = 600


class PowerHistory:
    """One card: its samples of the last ten seconds, and its own levels since the watch began."""

    def __init__(self) -> None:
        self.samples: deque[tuple[float, int | None, float | None]] = deque()  # t, percent, watts
        self._idle: deque[float] = deque(maxlen=IDLE_SAMPLES)
        self._idle_w: float | None = None
        self._work_w: float | None = None
        self._run: deque[float] = deque(maxlen=12)  # pinned and flat: perhaps a spin, not counted as work
        self._run_t = 0.0
        self._run_max_w = 0.0

    def add(self, gpu: Gpu, t: float) -> None:
        """Take one reading."""
        self.samples.append((t, gpu.util_percent, gpu.power_w))
        while t - self.samples[0][0] > WINDOW_S:
            self.samples.popleft()
        if gpu.power_w is not None:
            self._count(t, gpu.used_bytes, gpu.util_percent, gpu.power_w)

    def load(self, index: int) -> GpuLoad:
        """What the card does, and its levels. Unknown while its newest sample is a gap, or there are too few."""
        util = [u for _, u, _ in self.samples if u is not None]
        power = [p for _, _, p in self.samples if p is not None]
        util = util if len(util) >= MIN_SAMPLES else []
        power = power if len(power) >= MIN_SAMPLES else []
        low, high = min(power, default=None), max(power, default=None)
        flat = low is not None and high is not None and high - low <= POWER_FLAT_W
        known = bool(util and power) and None not in self.samples[-1]
        return GpuLoad(
            index,
            self._work(util, low, flat) if known and low is not None else "",
            idle_w=self._idle_w,
            work_w=self._most_at_work(),
            low_w=low,
            high_w=high,
            flat=flat,
            util_min=min(util, default=None),
            util_max=max(util, default=None),
        )

    def far_above_idle(self, watts: float) -> bool:
        """No spinning kernel draws so much."""
        return self._idle_w is not None and watts >= POWER_WORK * self._idle_w

    def _work(self, util: list[int], low_w: float, flat: bool) -> str:
        """ "spins", "works" or "idle"."""
        if min(util) >= UTIL_PINNED and flat and not self.far_above_idle(low_w):
            return "spins"
        return "works" if max(util) > UTIL_IDLE or self.far_above_idle(low_w) else "idle"

    def _count(self, t: float, held: int | None, util: int | None, watts: float) -> None:
        pinned = util is not None and util >= UTIL_PINNED
        if pinned and self._stays_flat(watts):
            self._run.append(watts)
            self._run_max_w = max(self._run_max_w, watts)
            return
        if self._run and t - self._run_t < WINDOW_S:
            self._worked(self._run_max_w)
        self._run.clear()
        if pinned:
            self._run.append(watts)
            self._run_t, self._run_max_w = t, watts
        elif util is not None and util > UTIL_IDLE:
            self._worked(watts)
        elif util is not None and (held is None or held >= CONTEXT_BYTES):
            self._idle.append(watts)
            self._idle_w = sorted(self._idle)[(len(self._idle) - 1) // 2]  # the lower median

    def _stays_flat(self, watts: float) -> bool:
        return bool(self._run) and max(watts, *self._run) - min(watts, *self._run) <= POWER_FLAT_W

    def _worked(self, watts: float) -> None:
        self._work_w = max(self._work_w or 0.0, watts)

    def _most_at_work(self) -> float | None:
        """The most that it drew while power moved or stood far above idle; None: not seen at work yet."""
        if self._run and self.far_above_idle(self._run[-1]):
            return max(self._work_w or 0.0, self._run_max_w)
        return self._work_w
