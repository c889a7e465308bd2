"""One dashboard for many watches: the real application, in a thread with a loop of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from sgmon.model import Snapshot
from sgmon.settings import Settings
from sgmon.watch.engine import Engine
from tests.ui.screen import text_of
from tui_app.app import SgmonApp
from tui_app.no_engine import NoEngine
from tui_app.overview import Overview

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from widgets.log_text import LogText

T = TypeVar("T")
LOOK_S = 0.02


class Relay(NoEngine):
    """What the application takes for its engine; the real one behind it changes with the test."""

    def __init__(self) -> None:
        super().__init__()
        self._subscribers: list[Callable[[Snapshot], None]] = []
        self._engine: Engine | None = None

    def follow(self, engine: Engine) -> None:
        self._engine = engine
        engine.subscribe(self._pass_on)
        self._pass_on(engine.snapshot)

    def _pass_on(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        for subscriber in self._subscribers:
            subscriber(snapshot)

    @property
    def log_text(self) -> LogText:
        return super().log_text if self._engine is None else self._engine.log_text

    def subscribe(self, subscriber: Callable[[Snapshot], None]) -> None:
        self._subscribers.append(subscriber)

    def request_stacks(
        self, pids: Sequence[int] | None = None, samples: int = 1, native: bool = False, why: str = ""
    ) -> int | None:
        return None if self._engine is None else self._engine.request_stacks(pids, samples, native, why)


class Screen:
    """``follow`` an engine; then read what stands there, and press keys."""

    def __init__(self, size: tuple[int, int] = (120, 40)) -> None:
        self._relay = Relay()
        self._size = size
        self._ready: Future[None] = Future()
        self._work: asyncio.Queue[tuple[Callable[[Pilot[int]], Awaitable[Any]], Future[Any]] | None]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="screen", daemon=True)
        self._thread.start()
        self._ready.result(120)

    def follow(self, engine: Engine) -> None:
        """With an overview that has shown nothing yet."""
        self._relay.follow(engine)

        async def do(pilot: Pilot[int]) -> None:
            app = pilot.app
            assert isinstance(app, SgmonApp)
            app.clear_notifications()
            app.session.received = engine.snapshot
            while len(app.screen_stack) > 1:
                await app.pop_screen()
            await app.push_screen(Overview())

        self._do(do)

    def press(self, *keys: str) -> None:
        async def do(pilot: Pilot[int]) -> None:
            for key in keys:
                pilot.app.simulate_key(key)

        self._do(do)

    def text(self) -> str:
        async def do(pilot: Pilot[int]) -> str:
            return text_of(pilot.app)  # type: ignore[arg-type]

        return self._do(do)

    def until(self, *words: str, limit_s: float = 90.0) -> str:
        """The text, once all of ``words`` are in it (lines joined, frames left out)."""
        deadline = time.monotonic() + limit_s
        while True:
            text = self.text()
            joined = " ".join(text.replace("│", " ").split())
            if all(word in joined for word in words):
                return text
            assert time.monotonic() < deadline, f"not all of {words} in:\n{text}"
            threading.Event().wait(LOOK_S)

    def turns_a_page(self) -> None:
        """The help opens and goes again."""
        self.press("question_mark")
        self.until("this help")
        self.press("escape")
        deadline = time.monotonic() + 90.0
        while "this help" in self.text():
            assert time.monotonic() < deadline, "the help does not close"
            threading.Event().wait(LOOK_S)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._work.put_nowait, None)
        self._thread.join(30)

    def _do(self, work: Callable[[Pilot[int]], Awaitable[T]]) -> T:
        done: Future[T] = Future()
        self._loop.call_soon_threadsafe(self._work.put_nowait, (work, done))
        return done.result(120)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._work = asyncio.Queue()
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as err:
            if not self._ready.done():
                self._ready.set_exception(err)
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        app = SgmonApp(self._relay, Settings())
        async with app.run_test(size=self._size) as pilot:
            await pilot.pause()
            self._ready.set_result(None)
            while (item := await self._work.get()) is not None:
                work, done = item
                try:
                    done.set_result(await work(pilot))
                except BaseException as err:
                    done.set_exception(err)
