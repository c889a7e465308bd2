"""What pages cost in bytes at 120x40, on a quick link and on a thin one, on terminals that repeat characters and on
those that do not. Times are in benchmarks/link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.color import ColorSystem

from sgmon.model import Snapshot
from sgmon.settings import Settings
from tests.ui import fakes
from tests.ui.screen import give, running
from tui_app.app import SgmonApp
from tui_app.output.abilities import Abilities
from tui_app.output.cells import Row, blank, put
from tui_app.output.difference import difference
from tui_app.output.pens import PLAIN, Pen
from tui_app.output.thin import Savings, frugal_rows, page_of, without_rules

SIZE = (120, 40)
REPEATS = Abilities(repeats=True, repeats_ascii=True)
TMUX = REPEATS._replace(erases_in_colour=True)
TMUX_3_3 = TMUX._replace(repeats=False)
NOTHING = Abilities()
A_PAGE, RULES, QUIET_SECOND = 4096, 1024, 512


def cells(app: SgmonApp, colours: ColorSystem = ColorSystem.EIGHT_BIT) -> list[Row]:
    rows = blank(*SIZE)
    for row, strip in zip(rows, app.screen._compositor.render_strips(), strict=True):
        put(row, 0, strip, colours)
    return rows


def sent(old: list[Row], new: list[Row], can: Abilities = REPEATS) -> int:
    return len(difference(old, new, can).encode())


def most_sent(old: list[Row], new: list[Row]) -> int:
    """The most that a terminal gets that repeats any character, or ASCII alone: that one may get ``RULES`` more."""
    return max(sent(old, new, REPEATS), sent(old, new, TMUX_3_3) - RULES)


def sent_thin(old: list[Row], new: list[Row], page: Pen | None = PLAIN) -> int:
    """The most that a terminal gets, whatever it can do."""
    spared = [frugal_rows(rows, Savings(page)) for rows in (old, new)]
    bare = [frugal_rows(without_rules(rows), Savings(page, is_bare=True)) for rows in (old, new)]
    frames = (difference(*spared, REPEATS, in_order=True), difference(*bare, NOTHING, in_order=True))
    return max(len(frame.encode()) for frame in frames)


@pytest.mark.parametrize("make", [fakes.stuck, fakes.importing, fakes.loading, fakes.ready, fakes.crashed])
async def test_a_page_and_the_way_back_cost_at_most_4_kb(make: Callable[[], Snapshot], tmp_path: Path) -> None:
    async with running(make(), SIZE, log=tmp_path / "a.log") as (app, _, pilot):
        await pilot.pause()
        overview = cells(app)
        assert most_sent(blank(*SIZE), overview) <= A_PAGE  # the first screen is this and two frames before it
        for key in ("question_mark", "v", "D", "enter"):
            await pilot.press(key)
            await pilot.pause()
            page = cells(app)
            assert page != overview
            assert max(most_sent(overview, page), sent_thin(overview, page)) <= A_PAGE, key
            await pilot.press("q")
            await pilot.pause()
            again = cells(app)
            assert max(most_sent(page, again), sent_thin(page, again)) <= A_PAGE, f"back from {key}"


@pytest.mark.parametrize("theme", ["light", "dracula"])
async def test_the_overview_costs_at_most_4_kb_also_in_a_theme_with_colours_of_its_own(
    theme: str, tmp_path: Path
) -> None:
    async with running(fakes.loading(), SIZE, Settings(theme=theme), log=tmp_path / "a.log") as (app, _, pilot):
        await pilot.pause()
        rows = cells(app, ColorSystem.TRUECOLOR)
        assert sent(blank(*SIZE), rows, TMUX) <= A_PAGE
        assert sent(blank(*SIZE), rows, TMUX_3_3) <= A_PAGE + RULES
        is_light = not app.current_theme.dark
        page = page_of(app.current_theme, terminal_is_light=is_light, system=ColorSystem.TRUECOLOR)
        assert sent_thin(blank(*SIZE), rows, page) <= A_PAGE


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
