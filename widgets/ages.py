"""Ages that do not flicker: exact while young, then in steps, so that a quiet screen repaints little."""

from __future__ import annotations

from sgmon.units import age


def rough(seconds: float) -> int:
    """Whole seconds in steps: 0 below three, then 1, 5, 10, 30 and 60 s steps as it grows."""
    whole = max(0, int(seconds))
    if whole < 3:
        return 0
    for limit, step in ((10, 1), (30, 5), (120, 10), (600, 30)):
        if whole < limit:
            return whole - whole % step
    return whole - whole % 60


def coarse(seconds: float) -> int:
    """Whole seconds in steps of 10 below a minute, then of a minute: for what only its order of size tells."""
    whole = max(0, int(seconds))
    return whole - whole % (10 if whole < 60 else 60)


def ago(seconds: int) -> str:
    """ "now" or "35s ago", of a value that ``rough`` made."""
    return "now" if seconds == 0 else f"{age(seconds)} ago"
