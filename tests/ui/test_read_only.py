"""In a browser every key either shows something or says why it does nothing."""

from __future__ import annotations

from fnmatch import fnmatch

import pytest
from textual.binding import Binding

from sgmon.settings import Settings
from tests.ui import fakes
from tests.ui.screen import text_of
from tui_app.app import SgmonApp
from tui_app.overview import Overview
from tui_app.picker import Picker
from tui_app.read_only import ALLOWED, DENIED, ReadOnlyApp, ReadOnlyEngine, is_denied
from tui_app.replay_app import ReplayApp
from tui_app.report_screen import ReportScreen
from widgets.lines_view import LinesView


def _bindings() -> list[Binding]:
    """Every binding of the application, those that the help does not list too."""
    groups = [bindings for _, bindings in SgmonApp(fakes.FakeEngine(fakes.stuck())).help_sections()]
    groups += [ReplayApp.BINDINGS, Picker.BINDINGS, ReportScreen.BINDINGS, LinesView.BINDINGS, Overview.BINDINGS]
    return [one for group in groups for one in group if isinstance(one, Binding)]


def test_every_key_is_allowed_or_denied() -> None:
    assert len(_bindings()) > 70
    for one in _bindings():
        assert one.id, f"{one.key} has no id"
        allowed = any(fnmatch(one.id, pattern) for pattern in ALLOWED)
        assert allowed != (one.id in DENIED), f"{one.id}: say in tui_app/read_only.py whether a visitor may"
        assert is_denied(one.action) == (one.id in DENIED), f"{one.id}: its action {one.action!r} is another's too"
    assert set(DENIED) == {one.id for one in _bindings()} & set(DENIED)


@pytest.mark.parametrize("key", ["d", "D", "s", "c", "C", "M", "ctrl+s", "ctrl+r", "ctrl+z"])
async def test_a_denied_key_says_why_and_reaches_no_engine(key: str) -> None:
    engine = fakes.FakeEngine(fakes.stuck())
    app = ReadOnlyApp(ReadOnlyEngine(engine), Settings())
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await pilot.pause()
        await pilot.press(key)
        await pilot.pause()
        assert isinstance(app.screen, Overview)
        assert "read-only here" in text_of(app)
        assert "all stacks" not in text_of(app).splitlines()[-1], "the row of keys offers no key that is denied"


async def test_a_worker_page_opens_and_its_stack_key_is_denied() -> None:
    app = ReadOnlyApp(ReadOnlyEngine(fakes.FakeEngine(fakes.stuck())), Settings())
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await pilot.pause()
        await pilot.press("3", "enter")
        await pilot.pause()
        assert not isinstance(app.screen, Overview)
        await pilot.press("d")
        await pilot.pause()
        assert "stacks are taken in a terminal only" in text_of(app)
