"""The overview cell by cell, at every size, dark, light and without colours, against kept files.

After a change that is meant: ``make snapshots``, then look at the difference (git diff tests/ui/snapshots). A file holds
one situation: a legend of looks (SGR parameters: dark | light | NO_COLOR), then for each size the rows, and below a row
which look its cells have ("a9 b103": nine cells of a, ...). A row of plain cells has no such line.
"""

from __future__ import annotations

import difflib
import os
import string
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.color import ColorSystem

from sgmon.model import Snapshot
from sgmon.settings import Settings
from tests.ui import fakes
from tests.ui.screen import give, running
from tui_app.app import SgmonApp
from tui_app.output.cells import Row, blank, put
from tui_app.output.pens import PLAIN, Pen

FOLDER = Path(__file__).parent / "snapshots"
WRITE = "SGMON_WRITE_SNAPSHOTS"
SIZES = ((60, 15), (80, 24), (100, 30), (120, 40), (200, 50), (60, 50))
THEMES = ("dark", "light", "none")
SITUATIONS: dict[str, Callable[[], Snapshot]] = {
    "waiting": fakes.waiting,
    "loading": fakes.loading,
    "stuck-8-ranks": fakes.stuck,
    "stuck-1-rank": lambda: fakes.stuck(tp=1, bad=0),
    "stuck-64-ranks": lambda: fakes.stuck(tp=64, bad=37),
    "crashed": fakes.crashed,
    "ready": fakes.ready,
}
Look = tuple[Pen, ...]  # one for each theme
_MARKS = string.ascii_letters + string.digits


@pytest.mark.parametrize("name", SITUATIONS)
async def test_the_overview_is_as_it_was(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TZ", "UTC")
    pages = {}
    for theme in THEMES:
        if theme == "none":
            monkeypatch.setenv("NO_COLOR", "1")
        pages[theme] = await _pages(SITUATIONS[name](), theme, tmp_path / "server.log")
    text = _as_text(pages)
    path = FOLDER / f"{name}.txt"
    if os.environ.get(WRITE):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    kept = path.read_text(encoding="utf-8")
    changes = difflib.unified_diff(kept.splitlines(), text.splitlines(), "kept", "now", lineterm="", n=1)
    assert kept == text, "\n".join(["if this is meant: make snapshots", *changes])


def test_the_kept_files_are_those_of_the_situations_and_small() -> None:
    files = list(FOLDER.iterdir())
    assert {path.stem for path in files} == set(SITUATIONS)
    assert sum(path.stat().st_size for path in files) < 1_500_000


async def _pages(snapshot: Snapshot, theme: str, log: Path) -> list[list[Row]]:
    """The cells at each size."""
    made = []
    settings = Settings(theme="light" if theme == "light" else "dark")
    async with running(snapshot, SIZES[0], settings, log) as (app, engine, pilot):
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await give(engine, pilot, snapshot)
            await pilot.pause()
            made.append(_cells(app))
    return made


def _cells(app: SgmonApp) -> list[Row]:
    rows = blank(*app.size)
    for row, strip in zip(rows, app.screen._compositor.render_strips(), strict=True):
        put(row, 0, strip, ColorSystem.EIGHT_BIT)
    return rows


def _as_text(pages: dict[str, list[list[Row]]]) -> str:
    marks: dict[Look, str] = {}
    body = []
    for index, (width, height) in enumerate(SIZES):
        body.append(f"=== {width}x{height}")
        for y in range(height):
            rows = [pages[theme][index][y] for theme in THEMES]
            texts = {"".join(char for char, _ in row) for row in rows}
            assert len(texts) == 1, f"other words in another theme: {texts}"
            looks = [tuple(row[x][1] for row in rows) for x in range(width)]
            body.append(texts.pop().rstrip())
            if any(pen != PLAIN for look in looks for pen in look):
                body.append("~ " + " ".join(_runs(looks, marks)))
    legend = [f"{mark}  {' | '.join(map(_sgr, look))}" for look, mark in marks.items()]
    return "\n".join([*legend, *body]) + "\n"


def _runs(looks: list[Look], marks: dict[Look, str]) -> list[str]:
    runs: list[tuple[str, int]] = []
    for look in looks:
        mark = marks.setdefault(look, _MARKS[len(marks)])
        if runs and runs[-1][0] == mark:
            runs[-1] = (mark, runs[-1][1] + 1)
        else:
            runs.append((mark, 1))
    return [f"{mark}{count}" for mark, count in runs]


def _sgr(pen: Pen) -> str:
    return ";".join([*sorted(pen.attributes), *filter(None, (pen.fore, pen.back))]) or "plain"
