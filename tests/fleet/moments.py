"""The last snapshot of a recorded start that had a state."""

from __future__ import annotations

from functools import cache

from sgmon.model import Snapshot
from tests.recorded import moments


@cache
def worst(name: str, state: str) -> Snapshot:
    """The last moment of a recording at which the verdict had this state."""
    return [moment for moment in moments(name) if moment.verdict.state == state][-1]
