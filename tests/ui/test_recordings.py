"""Real starts on the screen: every recording at every size, at one of three moments."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from rich.cells import cell_len

from sgmon.analyse.store import Store
from sgmon.model import Event, Snapshot
from sgmon.recording.codec import read
from tests.recorded import RECORDINGS
from tests.ui.screen import SIZES, give, rows_of, running
from widgets.states import state_style

ALL = sorted(RECORDINGS.glob("*.jsonl.gz"))


@cache
def moments(path: Path) -> list[Snapshot]:
    """Snapshots after a third, two thirds and all of a recording."""
    header, events = read(path)
    store = Store(header.epoch)
    snapshots = []
    for event in events:
        if int(event.t) > int(store.snapshot.t):
            store.step(Event(float(int(event.t)), "tick"))
        snapshots.append(store.step(event))
    last = len(snapshots) - 1
    return [snapshots[last // 3], snapshots[last * 2 // 3], snapshots[last]]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_real_starts_fit(size: tuple[int, int]) -> None:
    async with running(Snapshot(), size) as (app, engine, pilot):
        for number, path in enumerate(ALL):
            snapshot = moments(path)[(number + SIZES.index(size)) % 3]  # with the sizes all moments have their turn
            await give(engine, pilot, snapshot)
            rows = rows_of(app)
            assert {cell_len(row) for row in rows} == {size[0]}, path.name
            assert state_style(snapshot.verdict.state).word in rows[0], path.name
