"""The recordings in tests/recordings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sgmon.analyse.store import Store
from sgmon.model import Event, Snapshot
from sgmon.recording.codec import read

RECORDINGS = Path(__file__).parent / "recordings"


def recording(name: str) -> tuple[float, Iterator[Event]]:
    """Epoch and events of a recording."""
    header, events = read(RECORDINGS / f"{name}.jsonl.gz")
    return header.epoch, events


def moments(name: str) -> Iterator[Snapshot]:
    """The snapshot after each event of a recording."""
    epoch, events = recording(name)
    store = Store(epoch)
    for event in events:
        yield store.step(event)
