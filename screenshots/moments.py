"""Moments of a recording, painted by the real application: a screen as SVG, and an SVG as a picture."""

from __future__ import annotations

import asyncio
import io
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import cairosvg
import rich.console
from msgspec.structs import replace
from PIL import Image
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME
from textual.pilot import Pilot

from sgmon.analyse.log.index import LogIndex
from sgmon.analyse.store import Store
from sgmon.model import Event, LogReading, Snapshot
from sgmon.recording.codec import read
from sgmon.settings import Settings
from tui_app.app import SgmonApp

RECORDINGS = Path(__file__).resolve().parent.parent / "tests" / "recordings"
TICK_S = 1.0
#: Rich places cells of 12.2 units; DejaVu Sans Mono of this size is as wide
FONT = "DejaVu Sans Mono"
FONT_SIZE = "20.26px"
SCALE = 5


class RecordedEngine:
    """A recording in the engine's shape, which is moved on by hand."""

    def __init__(self, path: Path) -> None:
        header, events = read(path)
        self.log_text = LogIndex(live=False)
        self._events = iter(events)
        self._next: Event | None = next(self._events, None)
        self._store = Store(header.epoch)
        self._clock = 0.0
        self._subscriber: Callable[[Snapshot], None] | None = None
        self.snapshot: Snapshot = self._store.snapshot

    def go(self, t: float) -> None:
        """On to ``t`` seconds, or to a second after the last event."""
        while self._next is not None and self._next.t <= t:
            event = self._next
            while self._clock + TICK_S <= event.t:  # recordings hold no ticks: silence must still move time
                self._clock += TICK_S
                self._store.step(Event(self._clock, "tick"))
            if isinstance(event.reading, LogReading):
                self.log_text.follow(event.reading)
            self._store.step(event)
            self._next = next(self._events, None)
        snapshot = self._store.step(Event(min(t, self._store.snapshot.t + TICK_S), "tick"))
        self.snapshot = replace(snapshot, candidates=())  # other servers of the machine that made the recording
        if self._subscriber is not None:
            self._subscriber(self.snapshot)

    def subscribe(self, subscriber: Callable[[Snapshot], None]) -> None:
        self._subscriber = subscriber

    def request_stacks(
        self, pids: Sequence[int] | None = None, samples: int = 1, native: bool = False, why: str = ""
    ) -> int | None:
        """A recording cannot be asked."""

    def choose(self, pid: int) -> None:
        """Nor can it watch another server."""

    def save_flight(self) -> bool:
        return False

    def start(self) -> None: ...

    def stop(self) -> None: ...


@asynccontextmanager
async def painted(
    engine: RecordedEngine, size: tuple[int, int], theme: str
) -> AsyncIterator[tuple[SgmonApp, Pilot[int]]]:
    """The application over the recording."""
    rich.console.SVG_EXPORT_THEME = DEFAULT_TERMINAL_THEME if theme == "light" else SVG_EXPORT_THEME
    app = SgmonApp(engine, Settings(theme=theme))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, pilot


async def press(pilot: Pilot[int], keys: Sequence[str]) -> None:
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
    await pilot.pause()


def svg_at(path: Path, t: float, size: tuple[int, int], theme: str, keys: Sequence[str]) -> str:
    """The screen at one moment."""

    async def paint() -> str:
        engine = RecordedEngine(path)
        engine.go(t)
        async with painted(engine, size, theme) as (app, pilot):
            await press(pilot, keys)
            return svg_of(app, f"sgmon {size[0]}x{size[1]}")

    return asyncio.run(paint())


def svg_of(app: SgmonApp, title: str) -> str:
    """No web font and no random ids, so that the same screen gives the same file."""
    svg = app.export_screenshot(title=title)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code", FONT)
    svg = svg.replace("font-size: 20px", f"font-size: {FONT_SIZE}")
    return re.sub(r"terminal-\d+", "terminal", svg)


def picture_of(svg: str, width: int) -> Image.Image:
    """An SVG as pixels: drawn large, because cairo rounds the width of a letter (12.2 units) to whole pixels."""
    data = cairosvg.svg2png(bytestring=svg.encode(), scale=SCALE)
    with Image.open(io.BytesIO(data)) as drawn:
        flat = Image.new("RGB", drawn.size, "white")
        flat.paste(drawn, mask=drawn.getchannel("A") if drawn.mode == "RGBA" else None)
    return flat.resize((width, flat.height * width // flat.width), Image.Resampling.LANCZOS)


def few_colours(pictures: Sequence[Image.Image], svg: str, count: int) -> list[Image.Image]:
    """The pictures with one palette, which has the colours of the SVG: rare ones, such as red, are what matters."""
    named = sorted({word.lower() for word in re.findall(r"#[0-9a-fA-F]{6}", svg)})
    sample = Image.new("RGB", (max(picture.width for picture in pictures), sum(p.height for p in pictures)))
    top = 0
    for picture in pictures:
        sample.paste(picture, (0, top))
        top += picture.height
    rest = sample.quantize(count - len(named)).getpalette() or []
    own = [int(word[at : at + 2], 16) for word in named for at in (1, 3, 5)]
    palette = Image.new("P", (1, 1))
    palette.putpalette(own + rest[: 3 * (count - len(named))])
    return [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
