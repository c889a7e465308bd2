"""Text selected with the mouse: it stands still, and c copies it."""

from __future__ import annotations

from msgspec.structs import replace
from textual import events
from textual.pilot import Pilot

from tests.ui import fakes
from tests.ui.screen import give, rows_of, running
from tui_app.overview import Overview


async def drag(pilot: Pilot[int], begin: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down(offset=begin)
    await pilot._post_mouse_events([events.MouseMove], offset=end, button=1)
    await pilot.mouse_up(offset=end)
    await pilot.pause()


async def test_what_the_mouse_selects_is_copied_by_c_and_a_drag_is_no_click() -> None:
    async with running(fakes.stuck()) as (app, _, pilot):
        row = rows_of(app)[0]
        at = row.index("TP3")
        await drag(pilot, (at, 0), (at + 2, 0))  # the cell under the pointer is in it
        assert isinstance(app.screen, Overview)  # a click on the verdict would have opened its page
        assert app.screen.get_selected_text() == "TP3"
        await pilot.press("c")
        assert app.clipboard == "TP3"


async def test_rows_under_a_selection_stand_still_until_it_ends() -> None:
    snapshot = fakes.stuck()
    async with running(snapshot) as (app, engine, pilot):
        before = rows_of(app)[0]
        await drag(pilot, (2, 0), (20, 0))
        await give(engine, pilot, replace(snapshot, t=snapshot.t + 100))
        assert rows_of(app)[0] == before
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen.get_selected_text() is None
        assert rows_of(app)[0] != before


async def test_a_key_that_does_something_else_ends_the_selection() -> None:
    async with running(fakes.stuck()) as (app, _, pilot):
        await drag(pilot, (2, 0), (20, 1))
        assert "\n" in (app.screen.get_selected_text() or "")
        await pilot.press("3")
        await pilot.pause()
        assert app.screen.get_selected_text() is None
        assert app.screen.active == "3"  # type: ignore[attr-defined]


async def test_a_page_copies_its_selection_too() -> None:
    async with running(fakes.stuck()) as (app, _, pilot):
        await pilot.press("v")
        await pilot.pause()
        await drag(pilot, (1, 0), (3, 0))
        await pilot.press("c")
        assert app.clipboard == "why"
