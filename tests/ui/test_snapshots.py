"""The overview as SVG pictures at every size, dark, light and without colours, against the kept ones.

After a change that is meant: ``make snapshots``, then look at the pictures (tests/ui/__snapshots__). A test that fails
prints the rows that differ and the path of a page with both pictures side by side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.image import SVGImageSnapshotExtension

from sgmon.model import Snapshot
from sgmon.settings import Settings
from tests.ui import fakes
from tests.ui.pictures import Difference, describe, rows_of, svg_of, write_side_by_side
from tests.ui.screen import give, resize, running

SIZES = ((60, 15), (80, 24), (100, 30), (120, 40), (200, 50), (60, 50))
KEPT = Path(__file__).parent / "__snapshots__" / "test_snapshots"
THEMES = ("dark", "light", "no-color")
SITUATIONS: dict[str, Callable[[], Snapshot]] = {
    "waiting": fakes.waiting,
    "loading": fakes.loading,
    "stuck-8-ranks": fakes.stuck,
    "stuck-1-rank": lambda: fakes.stuck(tp=1, bad=0),
    "stuck-64-ranks": lambda: fakes.stuck(tp=64, bad=37),
    "crashed": fakes.crashed,
    "ready": fakes.ready,
}


@pytest.mark.parametrize("name", SITUATIONS)
async def test_overview(
    name: str, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    situation = SITUATIONS[name]()
    drawn = await asyncio.gather(*(_pictures(situation, theme, tmp_path / theme, monkeypatch) for theme in THEMES))
    for same_size in zip(*drawn, strict=True):
        dark, *others = ([row.text for row in rows_of(svg)] for svg in same_size)
        for other in others:
            assert other == dark, "other words in another theme"
    picture = snapshot.use_extension(SVGImageSnapshotExtension)
    differences = []
    for theme, pictures in zip(THEMES, drawn, strict=True):
        for (width, height), svg in zip(SIZES, pictures, strict=True):
            shot = f"{width}x{height}-{theme}"
            if picture(name=shot) != svg:
                kept = picture.executions[picture.num_executions - 1].recalled_data or b""
                differences.append(Difference(shot, bytes(kept).decode(), svg))
    if differences:
        page = tmp_path / "snapshots.html"
        write_side_by_side(differences, page)
        pytest.fail(
            "\n".join([*describe(differences), f"side by side: {page}", "if this is meant: make snapshots"]),
            pytrace=False,
        )


def test_the_kept_pictures_are_small_and_fetch_nothing() -> None:
    files = list(KEPT.iterdir())
    assert len(files) == len(SITUATIONS) * len(SIZES) * len(THEMES)
    assert sum(path.stat().st_size for path in files) < 2_000_000
    for path in files:
        text = path.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http" not in text.partition("</style>")[0], f"{path.name} asks another machine for a font"


def test_a_picture_that_differs_is_described_by_its_rows(tmp_path: Path) -> None:
    kept = (KEPT / "test_overview[ready][80x24-dark].svg").read_text(encoding="utf-8")
    now = kept.replace("✓", "✗", 1).replace("c-808080", "c-ff0000")
    lines = list(describe([Difference("80x24-dark", kept, now)]))
    assert any(line.startswith("  - ✓ READY  serving on") for line in lines)
    assert any(line.startswith("  + ✗ READY  serving on") for line in lines)
    assert [line for line in lines if "other colours or weights: 0-7 TP0-7" in line]
    page = tmp_path / "both.html"
    write_side_by_side([Difference("80x24-dark", kept, now)], page)
    assert page.read_text(encoding="utf-8").count("<svg") == 2


async def _pictures(situation: Snapshot, theme: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The overview at each size. The application takes NO_COLOR out of the environment when it is made."""
    if theme == "no-color":
        monkeypatch.setenv("NO_COLOR", "1")
    settings = Settings(theme="light" if theme == "light" else "dark")
    made = []
    folder.mkdir()
    async with running(situation, SIZES[0], settings, folder / "server.log") as (app, engine, pilot):
        for size in SIZES:
            await resize(pilot, *size)
            await give(engine, pilot, situation)
            await pilot.pause()
            made.append(svg_of(app, theme == "light"))
    return made
