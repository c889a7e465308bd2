"""Clicks do what is written where they are made, and a key that cannot do it yet says why."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from sgmon.model import NextStep, Snapshot
from tests.ui import fakes
from tests.ui.screen import give, rows_of, running
from tests.ui.test_arrangement import replay
from tui_app.app import SgmonApp
from tui_app.overview import Overview
from tui_app.overview_keys import ANY_TIME
from tui_app.stack_screen import StackScreen
from tui_app.why_screen import WhyScreen
from widgets.hints import key_at

PATIENCE_S = 40.0


def stuck() -> Snapshot:
    """A stall whose next steps are keys."""
    steps = (
        NextStep("See where TP3 is", "py-spy dump --nonblocking --pid 4803", key="d"),
        NextStep("Take the stacks of all ranks, merged", "sgmon stacks", key="D"),
    )
    snapshot = fakes.stuck()
    return replace(snapshot, verdict=replace(snapshot.verdict, next=steps))


async def click_on(app: SgmonApp, pilot: Pilot[int], words: str) -> None:
    """Click on the first cell of these words."""
    y, x = next((y, row.index(words)) for y, row in enumerate(rows_of(app)) if words in row)
    await pilot.click(offset=(x, y))
    await pilot.pause()


async def shows(app: SgmonApp, pilot: Pilot[int], page: type) -> None:
    """Wait until this page is on top: a click presses a key, which comes by the queue."""
    for _ in range(int(PATIENCE_S / 0.02)):
        if isinstance(app.screen, page):
            return
        await pilot.pause(0.02)
    raise AssertionError(f"{page.__name__} did not open")


@pytest.mark.parametrize("size", [(60, 15), (120, 40)])
@pytest.mark.parametrize(("words", "page"), [("d stack", StackScreen), ("v why", WhyScreen)])
async def test_a_click_on_a_key_of_the_last_row_presses_it(words: str, page: type, size: tuple[int, int]) -> None:
    async with running(stuck(), size) as (app, _, pilot):
        await click_on(app, pilot, words)
        await shows(app, pilot, page)
        await click_on(app, pilot, "q back")
        await shows(app, pilot, Overview)


async def test_two_clicks_on_q_quit() -> None:
    async with running(stuck()) as (app, _, pilot):
        await click_on(app, pilot, "q quit")
        for _ in range(int(PATIENCE_S / 0.02)):
            if "q again quits" in rows_of(app)[-1]:
                break
            await pilot.pause(0.02)
        await click_on(app, pilot, "q again quits")
        for _ in range(int(PATIENCE_S / 0.02)):
            if app.return_code is not None:
                break
            await pilot.pause(0.02)
        assert app.return_code == 0


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
async def test_a_click_on_a_next_step_does_it(size: tuple[int, int]) -> None:
    async with running(stuck(), size) as (app, _, pilot):
        await click_on(app, pilot, "d: See where TP3 is")
        await shows(app, pilot, StackScreen)


async def test_a_click_on_the_verdict_opens_the_evidence() -> None:
    async with running(stuck()) as (app, _, pilot):
        await pilot.click(offset=(30, 0))
        await shows(app, pilot, WhyScreen)


async def test_a_click_elsewhere_takes_a_first_q_back() -> None:
    async with running(stuck()) as (app, _, pilot):
        await pilot.press("q")
        await pilot.pause()
        assert "q again quits" in rows_of(app)[-1]
        await pilot.click(offset=(30, 0))
        await shows(app, pilot, WhyScreen)
        await pilot.press("q")
        await pilot.pause()
        assert "q again quits" not in rows_of(app)[-1]


@pytest.mark.parametrize("seen_before", [False, True])
async def test_a_stack_of_the_odd_rank_is_taken_though_its_panel_is_hidden(seen_before: bool) -> None:
    """At 60x15 one panel shows at a time: the first next step must work without looking at the workers first."""
    async with running(fakes.loading() if seen_before else stuck(), (60, 15)) as (app, engine, pilot):
        if seen_before:
            await pilot.press("3", "1")
            await give(engine, pilot, fakes.stuck())
        await pilot.press("d")
        await shows(app, pilot, StackScreen)
        assert engine.requests[-1][0] == (4803,)


async def test_the_page_of_the_verdict_takes_the_keys_of_its_steps() -> None:
    async with running(stuck()) as (app, _, pilot):
        await pilot.press("v")
        await shows(app, pilot, WhyScreen)
        assert "d stack" in rows_of(app)[-1] and "D all stacks" in rows_of(app)[-1]
        await pilot.press("d")
        await shows(app, pilot, StackScreen)
        await pilot.press("q")
        await shows(app, pilot, WhyScreen)
    async with running(replay("gpu-oom-frac")[1]) as (app, _, pilot):
        await pilot.press("v")
        await shows(app, pilot, WhyScreen)
        assert "o first error" in rows_of(app)[-1] and "d stack" not in rows_of(app)[-1]
        await pilot.press("o")
        await shows(app, pilot, Overview)
        assert app.screen.active == "4"  # type: ignore[attr-defined]


def _waiting_keys() -> list[str]:
    bound = [(key, one.action.partition("(")[0]) for one in Overview.BINDINGS for key in one.key.split(",")]  # type: ignore[union-attr]
    return [key for key, action in bound if action not in ANY_TIME]


async def test_each_key_that_needs_a_server_says_so_while_there_is_none() -> None:
    keys = _waiting_keys()
    assert {"1", "z", "d", "D", "o", "x", "enter", "tab", "slash"} <= set(keys)
    async with running(Snapshot()) as (app, _, pilot):
        for key in keys:
            app.clear_notifications()
            await pilot.press(key)
            await pilot.pause()
            assert [one.message for one in app._notifications if "there is no server yet" in one.message], key
        await give_server(app, pilot)
        app.clear_notifications()
        await pilot.press("z")
        await pilot.pause()
        assert not app._notifications


async def give_server(app: SgmonApp, pilot: Pilot[int]) -> None:
    await give(app.session.engine, pilot, fakes.stuck())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "key"),
    [(0, "d"), (8, "d"), (9, "plus"), (10, "plus"), (11, "minus"), (12, "minus"), (20, "escape"), (90, "")],
)
def test_two_keys_in_one_hint_are_told_apart(x: int, key: str) -> None:
    assert key_at([("d", "stack"), ("+-", "speed"), ("esc", "back")], x) == key
