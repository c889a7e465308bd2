"""How long each phase of a start took. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable


def phase_seconds(passed: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """(phase, seconds) in the order of the start, from the first milestone of each to the first of the next one.

    passed: (phase, seconds on any clock) of each milestone, in any order; "" is a milestone of no phase. The last
    phase has no end and is left out.
    """
    began: dict[str, float] = {}
    for phase, at_s in sorted(passed, key=lambda item: item[1]):
        if phase:
            began.setdefault(phase, at_s)
    return tuple((phase, round(end - begin, 3)) for (phase, begin), (_, end) in itertools.pairwise(began.items()))
