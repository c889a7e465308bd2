"""An application on a terminal that is sent the cells that differ: its frames, its mouse, how quick the link is."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from textual import events
from textual.driver import Driver
from textual.screen import Screen

from tui_app.removed_widgets import ForgettingApp

if TYPE_CHECKING:
    from tui_app.output.driver import CellDriver


def _driver_class() -> type[Driver] | None:
    """Ours on a terminal; None (Textual chooses) where another one is asked for, as in a browser."""
    if os.environ.get("TEXTUAL_DRIVER") or sys.platform == "win32":
        return None
    from tui_app.output.driver import CellDriver

    return CellDriver


class CellApp(ForgettingApp):
    """Where the driver is Textual's own (in a test, in a browser) all is as Textual does it."""

    def __init__(self, *, ansi_color: bool | None) -> None:
        super().__init__(driver_class=_driver_class(), ansi_color=ansi_color)

    @property
    def _cells(self) -> CellDriver | None:
        """The driver, where it is ours (not in a test, not in a browser)."""
        from tui_app.output.driver import CellDriver

        return self._driver if isinstance(self._driver, CellDriver) else None

    def on_resize(self, event: events.Resize) -> None:
        """The terminal may have dropped cells, even where its size is the old one again."""
        if self._cells is not None:
            self._cells.resized(event.size)

    @property
    def link_words(self) -> str:
        """ "slow link: 1.3 s" while the terminal is far away."""
        return self._cells.link.words if self._cells is not None else ""

    def _display(self, screen: Screen[object], renderable: Any) -> None:
        """Hand a frame to the driver, which sends what differs as the terminal keeps up."""
        from textual._compositor import CompositorUpdate

        cells = None if self.is_headless else self._cells
        if cells is None or not isinstance(renderable, CompositorUpdate):
            super()._display(screen, renderable)
        elif self._running and not self._closed and not self._batch_count:
            cells.show(renderable, self.size, self.console._color_system)
            self.post_display_hook()

    def action_free_mouse(self) -> None:
        """The terminal selects text itself while it has the mouse."""
        if self._cells is None:
            return
        is_ours = self._cells.toggle_mouse()
        self.notify(
            "the mouse is sgmon's" if is_ours else "the mouse is the terminal's: M takes it back", markup=False
        )

    def action_repaint(self) -> None:
        """Send the whole screen: after ctrl+z and fg, or when something else wrote over it."""
        if self._cells is not None:
            self._cells.forget()
        self.refresh()
