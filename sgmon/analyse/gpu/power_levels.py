"""What a card's own utilisation and power tell: idle, at work, or spinning in a collective. Pure.

Measured on H200s: a rank that waits in a NCCL collective holds its card at 100 % with power constant to 1-2 W, near
the idle level (123-167 W beside 120-128 W idle and 270-540 W at work); work moves by tens of watts.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

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

Points = Sequence[tuple[float, float | None]]


@dataclass(frozen=True, slots=True)
class Levels:
    """Watts of one card in this watch. idle_w: with a context and no load. work_w: the most that it drew while power
    moved or stood far above idle; None: not seen at work yet."""

    idle_w: float | None = None
    work_w: float | None = None
    low_w: float | None = None  # of the last ten seconds
    high_w: float | None = None

    @property
    def flat(self) -> bool:
        return self.low_w is not None and self.high_w is not None and self.high_w - self.low_w <= POWER_FLAT_W


def levels(used: Points, util: Points, power: Points) -> Levels:
    """From the series of one GPU; the three have the same times."""
    idle: list[float] = []
    work_w: float | None = None
    run: list[float] = []  # power while utilisation is pinned and power flat: perhaps a spin, not counted as work
    run_t = 0.0
    for (t, held), (_, load), (_, watts) in zip(used, util, power, strict=False):
        if watts is None:
            continue
        if load is not None and load >= UTIL_PINNED and _stays_flat(run, watts):
            run_t = t if not run else run_t
            run.append(watts)
            continue
        if run and t - run_t < WINDOW_S:
            work_w = max(work_w or 0.0, *run)
        run = []
        if load is not None and load >= UTIL_PINNED:
            run, run_t = [watts], t
            continue
        if load is not None and load > UTIL_IDLE:
            work_w = max(work_w or 0.0, watts)
        elif load is not None and (held is None or held >= CONTEXT_BYTES):
            idle.append(watts)
    idle_w = statistics.median_low(idle) if idle else None
    if run and idle_w is not None and run[-1] >= POWER_WORK * idle_w:
        work_w = max(work_w or 0.0, *run)
    last = _window(power)
    if len(last) < MIN_SAMPLES:
        return Levels(idle_w, work_w)
    return Levels(idle_w, work_w, min(last), max(last))


def work_of(util: Points, seen: Levels) -> str:
    """ "spins", "works", "idle", or "" where ten seconds of samples do not tell."""
    load = _window(util)
    if len(load) < MIN_SAMPLES or seen.low_w is None or seen.high_w is None:
        return ""
    far_above = seen.idle_w is not None and seen.low_w >= POWER_WORK * seen.idle_w
    if min(load) >= UTIL_PINNED and seen.flat and not far_above:
        return "spins"
    if max(load) > UTIL_IDLE or far_above:
        return "works"
    return "idle"


def _stays_flat(run: list[float], watts: float) -> bool:
    return bool(run) and max(watts, *run[-12:]) - min(watts, *run[-12:]) <= POWER_FLAT_W


def _window(points: Points) -> list[float]:
    """Values of the last ten seconds; () when the newest is a gap."""
    if not points or points[-1][1] is None:
        return []
    begin = points[-1][0] - WINDOW_S
    out: list[float] = []
    for t, value in reversed(points):
        if t < begin:
            break
        if value is not None:
            out.append(value)
    return out
