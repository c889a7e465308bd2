"""The driver that keeps the screen as cells: what it asks for when the size of the terminal changes."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
import time
from types import SimpleNamespace
from typing import Any

import pytest
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Size
from textual.strip import Strip

from sgmon.settings import Settings
from tests.ui import fakes
from tests.ui.repeating import RepeatingScreen, RepeatingStream
from tests.ui.screen import running
from tui_app.app import SgmonApp
from tui_app.output.driver import CellDriver
from tui_app.output.pens import Pen

SIZE, SMALL = Size(12, 3), Size(8, 2)


def whole(size: Size) -> LayoutUpdate:
    return LayoutUpdate([[Strip([Segment("x" * size.width)])] for _ in range(size.height)], size.region)  # type: ignore[list-item]


def part(y: int) -> ChopsUpdate:
    chops: list[dict[int, Any]] = [{0: Strip([Segment("ab")])} for _ in range(SIZE.height)]
    return ChopsUpdate(chops, [(y, 0, 2)], [[2]] * SIZE.height)


async def test_a_part_of_the_screen_at_a_new_size_asks_for_the_whole_one() -> None:
    """The size was another for a moment, so short that Textual lays out nothing anew."""
    asked: list[str] = []
    app: Any = SimpleNamespace(refresh=lambda: asked.append("whole"))
    driver = CellDriver(app, mouse=False)
    driver.show(whole(SIZE), SIZE, None)
    driver.show(part(0), SIZE, None)
    assert asked == []
    driver.show(part(1), SMALL, None)
    driver.show(part(1), SIZE, None)
    assert asked == ["whole", "whole"]


async def test_a_terminal_that_was_resized_is_sent_the_whole_screen_again() -> None:
    driver = CellDriver(SimpleNamespace(refresh=lambda: None), mouse=False)  # type: ignore[arg-type]
    driver.show(whole(SIZE), SIZE, None)
    driver._sent = [list(row) for row in driver._wanted]
    driver.resized(SIZE)
    assert driver._sent is None


async def test_the_size_is_what_the_terminal_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS and LINES that a shell exports are of another time; nothing painted a screen of a milliard of columns."""
    monkeypatch.setenv("COLUMNS", "999999999")
    monkeypatch.setenv("LINES", "7")
    ours, theirs = os.openpty()
    try:
        with open(theirs, "w", closefd=False) as terminal:
            driver = CellDriver(SimpleNamespace(), mouse=False)  # type: ignore[arg-type]
            driver._file = terminal
            for size, seen in (((40, 120), (120, 40)), ((65_535, 65_535), (2_000, 1_000)), ((0, 0), (2_000, 7))):
                fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
                assert driver._get_terminal_size() == seen
    finally:
        os.close(ours)
        os.close(theirs)


async def test_a_link_that_is_quick_again_gets_the_whole_screen_in_its_own_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Greys are the terminal's faint while the link is thin."""
    sent: list[str] = []
    app: Any = SimpleNamespace(refresh=lambda: None, _sync_available=False)
    driver = CellDriver(app, mouse=False)
    driver._writer_thread = SimpleNamespace(_queue=SimpleNamespace(empty=lambda: True))  # type: ignore[assignment]
    monkeypatch.setattr(driver, "write", sent.append)
    grey = Style.parse("#a8a8a8")

    def show(text: str) -> str:
        rows = [[Strip([Segment(text, grey)])], *[[Strip([Segment("b" * SIZE.width, grey)])]] * 2]
        driver._pressed()  # frames that answer a key do not rest
        driver.show(LayoutUpdate(rows, SIZE.region), SIZE, ColorSystem.EIGHT_BIT)  # type: ignore[arg-type]
        driver._answered((28, 0))  # it has REP
        driver.link.answered(time.monotonic())
        return sent[-1]

    show("a" * SIZE.width)
    driver.link.is_thin = True
    assert "\x1b[2m" in show("c" * SIZE.width)
    driver.link.is_thin = False
    last = show("d" * SIZE.width)
    assert "\x1b[38;5;248m" in last and "d" in last and "b" in last


class Shown:
    """A driver and what a terminal, which has REP or not, makes of what it sends."""

    def __init__(self, *, repeats: bool) -> None:
        self.repeats = repeats
        self.screen = RepeatingScreen(SIZE.width, SIZE.height)
        self.stream = RepeatingStream(self.screen)
        app: Any = SimpleNamespace(refresh=lambda: None, _sync_available=False)
        self.driver = CellDriver(app, mouse=False)
        self.driver._writer_thread = SimpleNamespace(_queue=SimpleNamespace(empty=lambda: True))  # type: ignore[assignment]
        self.driver.write = lambda data: self.stream.feed(data.encode())  # type: ignore[method-assign]

    def show(self, *rows: str, style: str = "#a8a8a8") -> list[str]:
        """The rows of the terminal, after these were painted in a look."""
        look = Style.parse(style)
        update = LayoutUpdate([[Strip([Segment(row.ljust(SIZE.width), look)])] for row in rows], SIZE.region)  # type: ignore[list-item]
        self.driver._pressed()
        self.driver.show(update, SIZE, ColorSystem.TRUECOLOR)
        if self.driver._is_tried:
            self.driver._answered((28 if self.repeats else 2, 0))
        self.driver.link.answered(time.monotonic())
        return [row.rstrip() for row in self.screen.display]


@pytest.mark.parametrize("repeats", [True, False])
async def test_a_thin_link_without_rep_gets_no_rules_and_no_rule_of_before_stays(repeats: bool) -> None:
    terminal = Shown(repeats=repeats)
    rows = ["1 head ─────", "abc", "────────────"]
    assert terminal.show(*rows) == rows
    terminal.driver.link.is_thin = True
    thin = terminal.show("1 head ─────", "abd", "────────────")
    assert thin == (["1 head ─────", "abd", "────────────"] if repeats else ["1 head", "abd", ""])
    assert terminal.show("page", "", "") == ["page", "", ""]
    terminal.driver.link.is_thin = False
    assert terminal.show(*rows) == rows


async def test_a_thin_link_gets_the_terminals_background_on_the_whole_screen_at_once() -> None:
    """And the theme's again, when the link is quick or another theme is chosen."""
    terminal = Shown(repeats=True)
    theme = "#f8f8f2 on #282a36"
    terminal.driver.page = Pen("38;2;248;248;242", "48;2;40;42;54")

    def backgrounds(text: str) -> set[str]:
        assert terminal.show(text, "same", "", style=theme) == [text, "same", ""]
        return {terminal.screen.buffer[y][x].bg for y in range(SIZE.height) for x in range(SIZE.width)}

    assert backgrounds("a") == {"282a36"}
    terminal.driver.link.is_thin = True
    assert backgrounds("b") == {"default"}
    terminal.driver.page = None
    assert backgrounds("c") == {"282a36"}
    terminal.driver.page = Pen("38;2;248;248;242", "48;2;40;42;54")
    assert backgrounds("d") == {"default"}
    terminal.driver.link.is_thin = False
    assert backgrounds("e") == {"282a36"}


async def test_the_driver_knows_the_theme_of_the_start_and_the_one_that_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = CellDriver(SimpleNamespace(refresh=lambda: None), mouse=False)  # type: ignore[arg-type]
    monkeypatch.setattr(SgmonApp, "_cells", property(lambda _: driver))
    monkeypatch.setattr("tui_app.app.keep", lambda *_: None)
    monkeypatch.setattr("tui_app.output.thin.page_of", lambda theme, terminal_is_light, **_: Pen(theme.name))
    async with running(fakes.ready(), (80, 24), Settings(theme="dracula")) as (app, _, pilot):
        assert driver.page == Pen("dracula")
        app.theme = "nord"
        await pilot.pause()
        assert driver.page == Pen("nord")
