"""The driver that keeps the screen as cells: what it asks for when the size of the terminal changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rich.segment import Segment
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Size
from textual.strip import Strip

from tui_app.output.driver import CellDriver

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
