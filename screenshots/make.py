"""Render the screenshots: a moment of a recording, as SVG and (with cairosvg) as PNG.

    python screenshots/make.py                         all of SHOTS, into this folder
    python screenshots/make.py REC.jsonl.gz T OUT.svg  one moment, T in seconds, at 120x40
    python screenshots/make.py REC.jsonl.gz T OUT.svg 80x24 3 z       ... with keys pressed before

Nothing is made by hand: change the screen, run this, look at the difference.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import rich.console  # noqa: E402
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME  # noqa: E402

from sgmon.analyse.log.index import LogIndex  # noqa: E402
from sgmon.analyse.store import Store  # noqa: E402
from sgmon.model import Event, LogReading, Snapshot  # noqa: E402
from sgmon.recording.codec import read  # noqa: E402
from sgmon.settings import Settings  # noqa: E402
from tui_app.app import SgmonApp  # noqa: E402

RECORDINGS = HERE.parent / "tests" / "recordings"
TICK_S = 1.0


class Shot(NamedTuple):
    """One picture: which moment, how large, which keys before."""

    name: str
    recording: str
    t: float
    size: tuple[int, int] = (120, 40)
    keys: tuple[str, ...] = ()
    theme: str = "dark"


SHOTS = (
    Shot("stuck-rank-120x40", "demo-stuck-rank.jsonl.gz", 1e9),
    Shot("stuck-rank-light", "demo-stuck-rank.jsonl.gz", 1e9, theme="light"),
    Shot("h200x2-graph-capture", "h200x2-cold.jsonl.gz", 158.0),
    Shot("h200x2-nccl-spin", "h200x2-nccl-spin.jsonl.gz", 150.0),
    Shot("h200x2-nccl-spin-gpu", "h200x2-nccl-spin.jsonl.gz", 150.0, (120, 40), ("2", "enter")),
    Shot("h200x2-nccl-spin-zoomed", "h200x2-nccl-spin.jsonl.gz", 150.0, (120, 40), ("2", "2")),
    Shot("loading", "gpu-tp2.jsonl.gz", 60.0),
    Shot("stopped-rank", "gpu-tp2-stop1.jsonl.gz", 45.0),
    Shot("stopped-rank-80x24", "gpu-tp2-stop1.jsonl.gz", 45.0, (80, 24)),
    Shot("stopped-rank-60x15", "gpu-tp2-stop1.jsonl.gz", 45.0, (60, 15)),
    Shot("no-peer-200x50", "gpu-hang-nnodes.jsonl.gz", 1e9, (200, 50)),
    Shot("out-of-memory", "gpu-oom-frac.jsonl.gz", 1e9),
    Shot("why", "gpu-tp2-stop1.jsonl.gz", 45.0, (120, 40), ("v",)),
    Shot("worker", "gpu-tp2-stop1.jsonl.gz", 45.0, (120, 40), ("3", "enter")),
    Shot("ready", "gpu-tp2.jsonl.gz", 1e9),
)


class StillEngine:
    """A moment of a recording, in the engine's shape."""

    def __init__(self, path: Path, t: float) -> None:
        header, events = read(path)
        store = Store(header.epoch)
        self.log_text = LogIndex(live=False)
        clock = 0.0
        for event in events:
            if event.t > t:
                break
            while clock + TICK_S <= event.t:  # recordings hold no ticks: silence must still move time
                clock += TICK_S
                store.step(Event(clock, "tick"))
            if isinstance(event.reading, LogReading):
                self.log_text.follow(event.reading)
            store.step(event)
        self.snapshot: Snapshot = store.step(Event(min(t, store.snapshot.t + TICK_S), "tick"))

    def subscribe(self, subscriber: Callable[[Snapshot], None]) -> None:
        """Nothing comes any more."""

    def request_stacks(
        self, pids: Sequence[int] | None = None, samples: int = 1, native: bool = False, why: str = ""
    ) -> int | None:
        """A recording cannot be asked."""

    def choose(self, pid: int) -> None:
        """Nor can it watch another server."""


async def svg_of(shot: Shot, path: Path) -> str:
    """The screen as SVG."""
    app = SgmonApp(StillEngine(path, shot.t), Settings(theme=shot.theme))
    async with app.run_test(size=shot.size) as pilot:
        await pilot.pause()
        for key in shot.keys:
            await pilot.press(key)
            await pilot.pause()
        await pilot.pause()
        rich.console.SVG_EXPORT_THEME = DEFAULT_TERMINAL_THEME if shot.theme == "light" else SVG_EXPORT_THEME
        return _stable(app.export_screenshot(title=f"sgmon {shot.size[0]}x{shot.size[1]}"))


def _stable(svg: str) -> str:
    """No web font and no random ids, so that the same screen gives the same file."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono")
    return re.sub(r"terminal-\d+", "terminal", svg)


def write(shot: Shot, path: Path, out: Path) -> None:
    """SVG, and PNG beside it when cairosvg is installed."""
    out.write_text(asyncio.run(svg_of(shot, path)), encoding="utf-8")
    print(out)
    try:
        import cairosvg
    except (ImportError, OSError):
        return
    from PIL import Image  # cairosvg needs it too

    png = out.with_suffix(".png")
    cairosvg.svg2png(url=str(out), write_to=str(png))
    with Image.open(png) as picture:
        picture.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(png, optimize=True)


def main(args: Sequence[str]) -> int:
    if not args:
        for shot in SHOTS:
            write(shot, RECORDINGS / shot.recording, HERE / f"{shot.name}.svg")
        return 0
    if len(args) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    width, _, height = (args[3] if len(args) > 3 else "120x40").partition("x")
    shot = Shot("one", args[0], float(args[1]), (int(width), int(height)), tuple(args[4:]))
    write(shot, Path(args[0]), Path(args[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
