"""One row of panel names for low and narrow terminals, where one panel shows at a time."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from widgets.line import Line, width_of
from widgets.painted import Painted


class PanelTabs(Painted):
    """ " 1 startup  2 GPUs  3 workers ..."; the shown one is marked."""

    class Picked(Message):
        """A click on a name."""

        def __init__(self, number: str) -> None:
            super().__init__()
            self.number = number

    def __init__(self, names: Sequence[tuple[str, str]], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.names = tuple(names)
        self.active = ""
        self.loud: frozenset[str] = frozenset()

    def set_active(self, number: str, loud: frozenset[str] = frozenset()) -> None:
        """Mark the shown panel, and those that want to be looked at."""
        if (number, loud) != (self.active, self.loud):
            self.active, self.loud = number, loud
            self.update_view()

    def update_view(self) -> None:
        if self.size.width:
            self.show_lines([self._line(self.size.width)])

    def _line(self, width: int) -> Line:
        line: Line = ()
        for number, name in self.names:
            mark = "▸" if number == self.active else " "
            style = "title-focus" if number == self.active else ("odd" if number in self.loud else "dim")
            line = (*line, (f"{mark}{number} {name}{'!' if number in self.loud else ''} ", style))
        if width_of(line) < width:
            line = (*line, ("─" * (width - width_of(line)), "rule"))
        return line

    def on_resize(self, event: events.Resize) -> None:
        self.update_view()

    def on_click(self, event: events.Click) -> None:
        x = event.x
        for number, name in self.names:
            cells = len(name) + 4 + (1 if number in self.loud else 0)
            if x < cells:
                self.post_message(self.Picked(number))
                return
            x -= cells
