"""Panel 2: memory, load and power of each GPU, which rank uses it, and which GPU differs and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from sgmon.model import Snapshot
from widgets.gpu_layout import GpuKey, layout, silence
from widgets.gpu_rows import fold
from widgets.gpu_view import GpuView, select
from widgets.line import Line, plain, restyle
from widgets.panel import Panel

#: rows from which the history since the first reading is kept ready
_TALL = 14


class GpuPanel(Panel[GpuView]):
    """One row per GPU, and below it as much of its summary as fits; equal ones fold when nothing fits."""

    NUMBER = "2"
    TITLE = "GPUs"
    PROBE = "gpu"
    READS = ("gpu", "series", "verdict", "nodes")
    HINTS = (("↵", "detail"),)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "the GPU under the cursor in full", id="gpus.choose")
    ]

    class Chosen(Message):
        """Enter or a second click on a GPU."""

        def __init__(self, index: int, node: str = "") -> None:
            super().__init__()
            self.index, self.node = index, node

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor: GpuKey | None = None
        self._filled: tuple[GpuView | None, tuple[int, int], int] = (None, (0, 0), 0)
        self._places: dict[int, tuple[GpuKey, ...]] = {}  # row on the screen -> the GPUs that it is about

    def select(self, snapshot: Snapshot) -> GpuView:
        return select(snapshot, long=self.size.height >= _TALL)

    def heading(self, view: GpuView) -> Line:
        return ((view.name, "dim"),) if view.name else ()

    def corner(self, view: GpuView) -> Line:
        if view.simulated:
            return ((" SIMULATED ", "warn"),)
        return ()

    def state_of_rows(self) -> object:
        return self.cursor

    def paint(self, view: GpuView, width: int, height: int) -> Sequence[Line]:
        lines, places = layout(view, width, height)
        self._places = places
        marked = next((place for place, of in places.items() if self.selected in of), None)
        if self.has_focus and marked is not None:
            text = plain(lines[marked][:1])
            lines[marked] = restyle((("▸" + text[1:], "key"), *lines[marked][1:]), "cursor")
        if marked is not None:
            self.top = max(marked - height + 1, min(self.top, marked))
        return lines

    def wanted_rows(self, view: GpuView, width: int, room: int) -> int:
        rows = view.rows if len(view.rows) < room else fold(view.rows)
        return len(silence(view, room)) + max(1, 1 + len(rows) + sum(len(row.whys) for row in rows))

    def fills(self, width: int, height: int) -> int:
        if self.view is not None and self._filled[:2] != (self.view, (width, height)):
            self._filled = self.view, (width, height), 1 + len(layout(self.view, width, height - 1)[0])
        return self._filled[2]

    def probe_label(self) -> str:
        return (self.snapshot.gpu.source if self.snapshot else "") or "NVML"

    def stale_after_s(self) -> float:
        return 10.0

    # the cursor

    @property
    def selected(self) -> GpuKey | None:
        """The GPU under the cursor. Untouched it is on the first that differs."""
        rows = self.view.rows if self.view is not None else ()
        known = [row.key for row in rows]
        if self.cursor in known:
            return self.cursor
        return next((row.key for row in rows if row.stands_out), known[0] if known else None)

    def action_move(self, rows: int) -> None:
        shown = list(self._places.values())
        at = next((i for i, of in enumerate(shown) if self.selected in of), None)
        if at is None:
            return
        self.cursor = shown[max(0, min(len(shown) - 1, at + rows))][0]
        self.update_view()

    def action_choose(self) -> None:
        if self.selected is not None:
            self.post_message(self.Chosen(self.selected[1], self.selected[0]))

    def on_click(self, event: events.Click) -> None:
        place = event.y - 1 + self.top
        above = [row for row in self._places if row <= place]
        if above and event.y > 0 and not self.screen.selections:
            self.cursor = self._places[max(above)][0]
            self.update_view()
            if event.chain > 1:
                self.action_choose()

    def on_resize(self, event: events.Resize) -> None:
        self.view = None
        super().on_resize(event)
