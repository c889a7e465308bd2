"""Snapshots of recorded starts, at every moment or at the end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sgmon.analyse.store import Store
from sgmon.model import Snapshot
from sgmon.recording import codec

RECORDINGS = Path(__file__).parents[1] / "recordings"


def moments(name: str) -> Iterator[Snapshot]:
    """The snapshot after each event of a recording."""
    header, events = codec.read(RECORDINGS / f"{name}.jsonl.gz")
    store = Store(header.epoch)
    for event in events:
        yield store.step(event)


@cache
def worst(name: str, state: str) -> Snapshot:
    """The last moment of a recording at which the verdict had this state."""
    return [moment for moment in moments(name) if moment.verdict.state == state][-1]
