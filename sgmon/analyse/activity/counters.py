"""Counters of one process over the last seconds: steps and rates, nothing more.

Kept as running sums of growth, so that a rate costs one subtraction: eight ranks are read every second.
"""

from __future__ import annotations

from collections import deque

from sgmon.model import Process

RATE_WINDOW_S = 10.0
CPU_WINDOW_S = 5.0
#: a reading may come a little late and still belongs to the window
SLACK_S = 0.05
#: share of the looks at which a starved process is runnable; a hung one that spins is as well, and has a whole core
RUNNABLE_SHARE = 0.8

NAMES = ("read_bytes", "rchar", "written", "rss_file", "rss_anon", "cpu_s", "demand_s", "tree_s")
_INDEX = {name: index for index, name in enumerate(NAMES)}
_Values = tuple[float | None, ...]


def values_of(process: Process) -> _Values:
    """The counters of a reading in the order of ``NAMES``. demand: on a CPU plus waiting for one, in seconds."""
    demand = process.cpu_s
    if demand is not None and process.wait_s is not None:
        demand += process.wait_s
    tree = process.tree_cpu_s
    if tree is not None and process.tree_wait_s is not None:
        tree += process.tree_wait_s
    return (
        process.read_bytes,
        process.rchar_bytes,
        process.write_bytes,
        process.rss_file_bytes,
        process.rss_anon_bytes,
        process.cpu_s,
        demand,
        tree,
    )


class History:
    """Running sums of growth of one process, oldest first; a fall (a file was unmapped) counts as none."""

    def __init__(self) -> None:
        self._rows: deque[tuple[float, _Values]] = deque()
        self._states: deque[tuple[float, str]] = deque()
        self._raw: _Values = (None,) * len(NAMES)
        self._short = 0  # index of the first row of the CPU window
        self.queue_known = False  # the time in the run queue is known

    def add(self, process: Process, t: float) -> None:
        raw = values_of(process)
        self.queue_known = process.wait_s is not None
        if self._rows:
            before, old = self._rows[-1][1], self._raw
            sums = tuple(map(_grown, before, old, raw))
        else:
            sums = tuple(None if value is None else 0.0 for value in raw)
        self._raw = raw
        self._rows.append((t, sums))
        self._states.append((t, process.state))
        while t - self._rows[0][0] > RATE_WINDOW_S + SLACK_S:
            self._rows.popleft()
            self._states.popleft()
        edge = t - CPU_WINDOW_S - SLACK_S
        self._short = next(i for i, row in enumerate(self._rows) if row[0] >= edge)

    def last_step(self, name: str) -> tuple[float, float] | None:
        """(growth, seconds) between the two newest readings."""
        return self._between(-2, name) if len(self._rows) > 1 else None

    def rate(self, name: str, window_s: float = RATE_WINDOW_S) -> float | None:
        """Growth per second over the long or the CPU window; None below two readings."""
        if len(self._rows) < 2:
            return None
        first = 0 if window_s == RATE_WINDOW_S else min(self._short, len(self._rows) - 2)
        found = self._between(first, name)
        return None if found is None else found[0] / found[1]

    def rate_since(self, name: str, since_t: float) -> float | None:
        """Growth per second since ``since_t``, over the long window at most; None below two readings."""
        first = next((i for i, row in enumerate(self._rows) if row[0] >= since_t), len(self._rows))
        found = self._between(first, name) if first < len(self._rows) - 1 else None
        return None if found is None else found[0] / found[1]

    def demand(self) -> float | None:
        """Cores that it uses or waits for. Where the time in the run queue is not known: one, while it is runnable
        at nearly all looks and gets less."""
        found = self.rate("demand_s", CPU_WINDOW_S)
        if self.queue_known or found is None or found >= 1.0:
            return found
        return 1.0 if (self.share_of_state("R") or 0.0) >= RUNNABLE_SHARE else found

    def share_of_state(self, state: str) -> float | None:
        """The share of the last ten seconds' readings in this state."""
        if len(self._states) < 5:
            return None
        return sum(1 for _, seen in self._states if seen == state) / len(self._states)

    def _between(self, first: int, name: str) -> tuple[float, float] | None:
        index = _INDEX[name]
        t0, old = self._rows[first]
        t1, new = self._rows[-1]
        before, after = old[index], new[index]
        if before is None or after is None or t1 <= t0:
            return None
        return max(0.0, after - before), t1 - t0  # a gap of unknown readings starts the sum anew


def _grown(total: float | None, old: float | None, new: float | None) -> float | None:
    """The sum after one more reading; unknown readings add nothing, and are unknown themselves."""
    if new is None:
        return None
    if total is None or old is None:
        return 0.0
    return total + new - old if new > old else total
