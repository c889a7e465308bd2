"""A page of lines that scrolls: for stacks, details and help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from widgets.line import Line, plain, width_of, wrap
from widgets.painted import Painted


class LinesView(Painted, can_focus=True):
    """All rows are kept, and the visible ones painted; a long one goes on below. New rows do not move the reader."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_by(-1)", "up", show=False, id="page.up"),
        Binding("down,j", "scroll_by(1)", "down", show=False, id="page.down"),
        Binding("pageup,ctrl+b", "page(-1)", "a page up", show=False, id="page.pageup"),
        Binding("pagedown,ctrl+f", "page(1)", "a page down", show=False, id="page.pagedown"),
        Binding("g,home", "scroll_by(-999999)", "top", show=False, id="page.top"),
        Binding("G,end", "scroll_by(999999)", "bottom", show=False, id="page.bottom"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.page: list[Line] = []
        self.top = 0
        self._rows: list[Line] = []  # the page as wide as the screen

    def show_page(self, page: Sequence[Line]) -> None:
        """Replace all rows."""
        self.page = list(page)
        self._fit()

    @property
    def page_text(self) -> str:
        """All rows as text."""
        return "\n".join(plain(line).rstrip() for line in self.page)

    @property
    def position(self) -> str:
        """ "" when all fits, else "1-30 of 120"."""
        height, count = self.size.height, len(self._rows)
        return "" if count <= height else f"{self.top + 1}-{min(count, self.top + height)} of {count}"

    def action_scroll_by(self, rows: int) -> None:
        self.top += rows
        self._paint_window()

    def action_page(self, pages: int) -> None:
        self.action_scroll_by(pages * max(1, self.size.height - 2))

    def _fit(self) -> None:
        width = self.size.width
        self._rows = [
            row for line in self.page for row in (wrap(line, width, hang(line, width)) if width else [line])
        ]
        self._paint_window()

    def _paint_window(self) -> None:
        height = self.size.height
        self.top = max(0, min(self.top, len(self._rows) - height))
        self.show_lines(self._rows[self.top : self.top + height])

    def on_resize(self, event: events.Resize) -> None:
        self._fit()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_scroll_by(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_scroll_by(-3)


def hang(line: Line, width: int) -> int:
    """Cells before the rows that go on below a long one: they stand under what its label is about."""
    label = line[0][0] if line else ""
    lead = len(label) - len(label.lstrip())
    cells = width_of(line[:1])
    return cells if label.strip() and cells <= width // 3 and len(line) > 1 else lead + 2
