"""A page of lines that scrolls: for stacks, details and help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from widgets.line import Line, plain
from widgets.painted import Painted


class LinesView(Painted, can_focus=True):
    """All rows are kept; the visible ones are painted. New rows do not move the reader."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_by(-1)", "up", show=False, id="page.up"),
        Binding("down,j", "scroll_by(1)", "down", show=False, id="page.down"),
        Binding("pageup,ctrl+b", "page(-1)", "a page up", show=False, id="page.pageup"),
        Binding("pagedown,ctrl+f", "page(1)", "a page down", show=False, id="page.pagedown"),
        Binding("g,home", "scroll_by(-999999)", "top", show=False, id="page.top"),
        Binding("G,end", "scroll_by(999999)", "bottom", show=False, id="page.bottom"),
        Binding("left", "shift(-8)", "left", show=False, id="page.left"),
        Binding("right", "shift(8)", "right", show=False, id="page.right"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.page: list[Line] = []
        self.top = 0
        self.left = 0

    def show_page(self, page: Sequence[Line]) -> None:
        """Replace all rows."""
        self.page = list(page)
        self._paint_window()

    @property
    def page_text(self) -> str:
        """All rows as text."""
        return "\n".join(plain(line).rstrip() for line in self.page)

    @property
    def position(self) -> str:
        """ "" when all fits, else "1-30 of 120"."""
        height = self.size.height
        if len(self.page) <= height:
            return ""
        return f"{self.top + 1}-{min(len(self.page), self.top + height)} of {len(self.page)}"

    def action_scroll_by(self, rows: int) -> None:
        self.top += rows
        self._paint_window()

    def action_page(self, pages: int) -> None:
        self.action_scroll_by(pages * max(1, self.size.height - 2))

    def action_shift(self, cells: int) -> None:
        self.left = max(0, self.left + cells)
        self._paint_window()

    def _paint_window(self) -> None:
        height = self.size.height
        self.top = max(0, min(self.top, len(self.page) - height))
        rows = self.page[self.top : self.top + height]
        self.show_lines([_cut_left(row, self.left) for row in rows] if self.left else rows)

    def on_resize(self, event: events.Resize) -> None:
        self._paint_window()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_scroll_by(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_scroll_by(-3)


def _cut_left(line: Line, cells: int) -> Line:
    out = []
    for text, style in line:
        if cells >= len(text):
            cells -= len(text)
            continue
        out.append((text[cells:], style))
        cells = 0
    return tuple(out)
