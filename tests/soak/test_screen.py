"""Pages that open and close, and notices that come and go: nothing of them is kept."""

from __future__ import annotations

import gc
import time

from textual._styles_cache import StylesCache

from tests.ui import fakes
from tests.ui.screen import running, text_of
from tui_app.app import SgmonApp
from tui_app.overview import Overview

TIMES = 8


def caches() -> int:
    """Caches of painted rows that are alive, one for each widget."""
    gc.collect()
    return sum(isinstance(one, StylesCache) for one in gc.get_objects())


async def test_nothing_of_a_page_is_kept_when_it_is_closed() -> None:
    async with running(fakes.stuck()) as (app, _, pilot):
        before = caches()
        for _ in range(TIMES):
            await pilot.press("v")
            assert "because" in text_of(app)
            await pilot.press("escape")
            assert isinstance(app.screen, Overview)
        assert caches() <= before


async def test_nothing_of_a_notice_is_kept_when_the_next_comes() -> None:
    app = SgmonApp(fakes.FakeEngine(fakes.stuck()))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        before = caches()
        for number in range(TIMES):
            app.notify(f"notice {number}", timeout=0.1)
            await pilot.pause()
            end = time.monotonic() + 30
            while app._notifications or app.screen.query("Toast"):
                assert time.monotonic() < end
                await pilot.pause(0.02)
        assert caches() < before + TIMES  # those of the newest alone; each has two
