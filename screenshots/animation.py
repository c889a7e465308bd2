"""The animated picture: a real start of two H200s stands still, the verdict says why, and it goes on to ready."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from moments import RECORDINGS, RecordedEngine, few_colours, painted, picture_of, press, svg_of

RECORDING = RECORDINGS / "h200x2-live-stop-load.jsonl.gz"
SIZE = (100, 30)
WIDTH = 860
COLOURS = 40


class Frame(NamedTuple):
    """t: seconds of the recording; shown_s: of the animation."""

    t: float
    shown_s: float
    title: str
    keys: tuple[str, ...] = ()


def frames() -> Iterator[Frame]:
    """What is shown, for how long."""
    for t in (8, 24, 44, 50, 55):
        yield Frame(t, 0.8, "sgmon watches a start")
    yield Frame(60, 2.4, "TP1 stops: the verdict names it, its evidence and what to do")
    yield Frame(66, 1.2, "TP1 stops: the verdict names it, its evidence and what to do")
    yield Frame(72, 2.4, "TP1 stops: the verdict names it, its evidence and what to do")
    yield Frame(80, 2.6, "v: why", ("v",))
    yield Frame(90, 1.6, "kill -CONT in another terminal", ("q",))
    for t in (98, 106, 114, 122):
        yield Frame(t, 0.8, "it goes on")
    yield Frame(126, 4.0, "ready")


async def _svgs() -> list[tuple[str, float]]:
    engine = RecordedEngine(RECORDING)
    engine.go(0.0)
    made = []
    async with painted(engine, SIZE, "dark") as (app, pilot):
        for frame in frames():
            engine.go(frame.t)
            await press(pilot, frame.keys)
            made.append((svg_of(app, frame.title), frame.shown_s))
    return made


def write(out: Path) -> None:
    """A GIF: one palette for all frames, so that only what changes is stored."""
    made = asyncio.run(_svgs())
    pictures = few_colours([picture_of(svg, WIDTH) for svg, _ in made], "".join(svg for svg, _ in made), COLOURS)
    first, *rest = pictures
    first.save(
        out, save_all=True, append_images=rest, duration=[int(1000 * s) for _, s in made], loop=0, optimize=False
    )
