"""Text selected with the mouse, where rows are painted and not laid out by Textual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.screen import Screen

from widgets.painted import Painted

if TYPE_CHECKING:
    from textual.geometry import Offset
    from textual.widget import Widget

#: keys that do these leave the selection; any other, and the wheel, ends it: rows under it stand still until then
_KEEP = frozenset({"copy", "copy_view", "screen.copy_text", "free_mouse"})


class SelectableScreen(Screen[None]):
    """A screen whose painted widgets can be selected from."""

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        widget, offset = super().get_widget_and_offset_at(x, y)
        if isinstance(widget, Painted):
            return widget, widget.text_offset(x - widget.region.x, y - widget.region.y)
        return widget, offset

    def copy_selection(self) -> bool:
        """Copy what is selected; returns whether anything was."""
        text = self.get_selected_text()
        if not text:
            return False
        from tui_app.copying import copy_text

        copy_text(self.app, text, "selection")
        return True


def ends_selection(screen: Screen[object], event: events.Event) -> bool:
    """Whether this key or turn of the wheel ends what is selected."""
    if not screen.selections:
        return False
    if isinstance(event, events.Key):
        active = screen.active_bindings.get(event.key)
        return active is None or active.binding.action not in _KEEP
    return isinstance(event, (events.MouseScrollDown, events.MouseScrollUp))
