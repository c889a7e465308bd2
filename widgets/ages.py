"""Ages in words."""

from __future__ import annotations

from sgmon.units import age


def ago(seconds: int) -> str:
    """ "now" or "35s ago", of a value that ``rough`` made."""
    return "now" if seconds == 0 else f"{age(seconds)} ago"
