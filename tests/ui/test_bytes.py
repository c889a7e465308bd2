"""What pages cost on a thin link, in bytes: a terminal of 120x40 that repeats characters. Times are in benchmarks/link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.color import ColorSystem

from sgmon.model import Snapshot
from tests.ui import fakes
from tests.ui.screen import give, running
from tui_app.app import SgmonApp
from tui_app.output.cells import Row, blank, put
from tui_app.output.difference import Abilities, difference
from tui_app.output.pens import frugal

SIZE = (120, 40)
REPEATS = Abilities(repeats=True)
A_PAGE, FIRST_SCREEN, QUIET_SECOND = 4096, 12 * 1024, 512


def cells(app: SgmonApp) -> list[Row]:
    rows = blank(*SIZE)
    for row, strip in zip(rows, app.screen._compositor.render_strips(), strict=True):
        put(row, 0, strip, ColorSystem.EIGHT_BIT)
    return rows


def thin(rows: list[Row]) -> list[Row]:
    return [[(char, frugal(pen)) for char, pen in row] for row in rows]


def sent(old: list[Row], new: list[Row]) -> int:
    return len(difference(old, new, REPEATS).encode())


@pytest.mark.parametrize("make", [fakes.stuck, fakes.importing, fakes.ready, fakes.crashed])
async def test_a_page_and_the_way_back_cost_at_most_4_kb(make: Callable[[], Snapshot], tmp_path: Path) -> None:
    async with running(make(), SIZE, log=tmp_path / "a.log") as (app, _, pilot):
        await pilot.pause()
        overview = cells(app)
        assert sent(blank(*SIZE), overview) <= FIRST_SCREEN
        for key in ("question_mark", "v", "D"):
            await pilot.press(key)
            await pilot.pause()
            page = cells(app)
            assert page != overview
            assert sent(thin(overview), thin(page)) <= A_PAGE, key
            await pilot.press("q")
            await pilot.pause()
            assert sent(thin(page), thin(cells(app))) <= A_PAGE, f"back from {key}"


@pytest.mark.parametrize("make", [fakes.stuck, fakes.ready])
async def test_a_second_in_which_only_time_passes_costs_at_most_half_a_kb(
    make: Callable[[], Snapshot], tmp_path: Path
) -> None:
    snapshot = make()
    async with running(snapshot, SIZE, log=tmp_path / "a.log") as (app, engine, pilot):
        await pilot.pause()
        total, before = 0, cells(app)
        for second in range(1, 31):
            await give(engine, pilot, replace(snapshot, t=snapshot.t + second))
            now = cells(app)
            total, before = total + sent(before, now), now
        assert 0 < total <= 30 * QUIET_SECOND
