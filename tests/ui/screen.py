"""What is on a screen, as text."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sgmon.model import Snapshot
from sgmon.settings import Settings
from tests.ui import fakes
from tui_app.app import SgmonApp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from textual.pilot import Pilot

SIZES = ((60, 15), (80, 24), (120, 40), (200, 50))


def rows_of(app: SgmonApp) -> list[str]:
    return ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]


def text_of(app: SgmonApp) -> str:
    return "\n".join(rows_of(app))


@asynccontextmanager
async def running(
    snapshot: Snapshot, size: tuple[int, int] = (120, 40), settings: Settings | None = None, log: Path | None = None
) -> AsyncIterator[tuple[SgmonApp, fakes.FakeEngine, Pilot[int]]]:
    """The real application on a fake engine, painted."""
    engine = fakes.FakeEngine(snapshot)
    if log is not None:
        engine.log_text = fakes.log_of(log, fakes.log_rows())
    app = SgmonApp(engine, settings or Settings())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, engine, pilot


async def resize(pilot: Pilot[int], width: int, height: int) -> None:
    """The terminal has another size, and the screen is laid out for it: on a loaded machine that is a while later."""
    await pilot.resize_terminal(width, height)
    app = pilot.app
    while app.size != (width, height) or app.screen._compositor.size != (width, height):
        await pilot.pause()


async def give(engine: fakes.FakeEngine, pilot: Pilot[int], snapshot: Snapshot) -> None:
    engine.give(snapshot)
    await pilot.pause()
