"""The screen before there is an engine, and the engine that comes behind it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from sgmon.model import Snapshot
from sgmon.settings import Settings
from tests.ui import fakes
from tests.ui.screen import running, text_of
from tui_app.app import SgmonApp
from tui_app.session import NoServerError

KEYS = ("1", "5", "tab", "z", "x", "d", "D", "enter", "c", "C", "s", "q", "v", "q", "space", "space")


async def test_the_first_frame_says_what_is_looked_for_and_the_engine_comes_behind_it() -> None:
    may_come = threading.Event()
    engine = fakes.FakeEngine(fakes.stuck())

    def make(say):
        may_come.wait(10)
        say("your cause book has a mistake")
        return engine

    app = SgmonApp(None, Settings(), make)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert "looking for servers" in text_of(app)
        assert not engine.started
        may_come.set()
        while not engine.started:
            await pilot.pause(0.01)
        engine.give(fakes.stuck())
        await pilot.pause()
        assert "STALLED" in text_of(app)
        assert "!TP3" in text_of(app)
        assert any("cause book" in note.message for note in app._notifications)


async def test_an_engine_that_cannot_be_made_ends_the_screen_with_the_error() -> None:
    def make(say):
        raise ImportError("no such module")

    app = SgmonApp(None, Settings(), make)
    with pytest.raises(ImportError, match="no such module"):
        async with app.run_test():
            while app.is_running:
                await asyncio.sleep(0.01)


async def test_a_pid_that_no_server_has_ends_the_screen_with_one_sentence() -> None:
    def make(say):
        raise NoServerError("there is no process 4711")

    app = SgmonApp(None, Settings(), make)
    async with app.run_test():
        while app.is_running and not app.refusal:
            await asyncio.sleep(0.01)
    assert app.refusal == "there is no process 4711"
    assert app.return_code == 6


async def test_no_key_fails_while_there_is_no_server() -> None:
    async with running(Snapshot()) as (app, engine, pilot):
        await pilot.press(*KEYS)
        await pilot.pause()
        assert engine.requests == []
        assert app.is_running


def test_the_first_frame_needs_no_model_no_engine_and_no_probe() -> None:
    code = (
        "import sys, tui_app.cli, tui_app.watch, tui_app.app, widgets.waiting as waiting; tui_app.cli.watch_parser(); "
        "assert waiting.paint(waiting._OPENING, 100); print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(run.stdout.split())
    late = {
        "sgmon.model",
        "sgmon.servers.registry",
        "sgmon.watch.engine",
        "sgmon.analyse.store",
        "sgmon.analyse.stacks",
        "sgmon.analyse.log",
        "sgmon.collect.probes",
        "widgets.logview",
        "httpx",
    }
    assert not loaded & late


async def test_what_an_engine_publishes_before_the_screen_listens_is_shown() -> None:
    engine = fakes.FakeEngine(fakes.loading())
    app = SgmonApp(engine, Settings())
    engine.snapshot = fakes.stuck()  # published between __init__ and on_mount, then silence
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert "STALLED" in text_of(app)
