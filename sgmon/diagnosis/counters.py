"""Counters of one process over the last half minute: rates over windows, nothing more."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass

from sgmon.model import Process

KEPT_S = 30.0
RATE_WINDOW_S = 10.0
CPU_WINDOW_S = 5.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What was read of one process at ``t``; None where it could not be read."""

    t: float
    read_bytes: int | None
    rchar: int | None
    written: int | None
    rss_file: int | None
    rss_anon: int | None
    cpu_s: float | None
    demand_s: float | None
    tree_s: float | None
    state: str


def sample(process: Process, t: float) -> Sample:
    """The counters of a reading that matter here. demand: on a CPU plus waiting for one, in seconds."""
    demand = process.cpu_s
    if process.cpu_s is not None and process.wait_s is not None:
        demand = process.cpu_s + process.wait_s
    tree = process.tree_cpu_s
    if tree is not None and process.tree_wait_s is not None:
        tree += process.tree_wait_s
    return Sample(
        t=t,
        read_bytes=process.read_bytes,
        rchar=process.rchar_bytes,
        written=process.write_bytes,
        rss_file=process.rss_file_bytes,
        rss_anon=process.rss_anon_bytes,
        cpu_s=process.cpu_s,
        demand_s=demand,
        tree_s=tree,
        state=process.state,
    )


class History:
    """The samples of one process, oldest first."""

    def __init__(self) -> None:
        self.samples: deque[Sample] = deque()

    def add(self, new: Sample) -> None:
        self.samples.append(new)
        while self.samples and new.t - self.samples[0].t > KEPT_S:
            self.samples.popleft()

    def last_step(self, name: str) -> tuple[float, float] | None:
        """(growth, seconds) between the two newest samples; a fall counts as no growth."""
        if len(self.samples) < 2:
            return None
        return _step(self.samples[-2], self.samples[-1], name)

    def rate(self, name: str, window_s: float = RATE_WINDOW_S) -> float | None:
        """Growth per second over the window, falls left out; None below half a window of samples."""
        samples = self._window(window_s)
        if len(samples) < 2:
            return None
        grown = 0.0
        known = 0.0
        for old, new in itertools.pairwise(samples):
            step = _step(old, new, name)
            if step is not None:
                grown += step[0]
                known += step[1]
        return grown / known if known > 0 else None

    def share_of_state(self, state: str, window_s: float = RATE_WINDOW_S) -> float | None:
        samples = self._window(window_s)
        if len(samples) < 5:
            return None
        return sum(1 for s in samples if s.state == state) / len(samples)

    def _window(self, window_s: float) -> list[Sample]:
        newest = self.samples[-1].t if self.samples else 0.0
        return [s for s in self.samples if newest - s.t <= window_s + 0.05]


def _step(old: Sample, new: Sample, name: str) -> tuple[float, float] | None:
    before: float | None = getattr(old, name)
    after: float | None = getattr(new, name)
    seconds = new.t - old.t
    if before is None or after is None or seconds <= 0:
        return None
    return max(0.0, float(after) - float(before)), seconds
