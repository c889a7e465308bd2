"""Enter on a GPU: everything that is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from sgmon.model import Snapshot
from sgmon.text import clean
from sgmon.units import rank_list
from tui_app.lines_screen import LinesScreen
from widgets.gpu_page import gpu_lines, gpu_of
from widgets.line import Line


class GpuScreen(LinesScreen):
    """Memory and its holders, the log's plan, the history since the first reading, load, errors, what is missing."""

    STEM = "gpu"
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (("n", "next GPU"), ("p", "before"), ("c", "copy"), ("s", "save"))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "turn(-1)", "GPU before", id="gpu.before"),
        Binding("n", "turn(1)", "next GPU", id="gpu.next"),
    ]

    def __init__(self, index: int, node: str = "") -> None:
        super().__init__()
        self.index, self.node = index, node

    def title_line(self, snapshot: Snapshot) -> Line:
        snapshot = snapshot.of_node(self.node)
        gpu = gpu_of(snapshot, self.index)
        name = clean(gpu.name, 40) if gpu else "not there any more"
        ranks = rank_list(gpu.ranks) + ("~" if gpu.ranks_inferred else "") if gpu and gpu.ranks else "no rank"
        simulated: Line = (("  SIMULATED ", "badge-warn"),) if snapshot.gpu.simulated else ()
        return (
            (f" {f'{clean(self.node, 30)} ' if self.node else ''}GPU {self.index} ", "title-focus"),
            (f"  {ranks}", "strong"),
            (f"  {name}", "dim"),
            *simulated,
        )

    def page_lines(self, snapshot: Snapshot, width: int) -> Sequence[Line]:
        return gpu_lines(snapshot.of_node(self.node), self.index, width)

    def action_turn(self, step: int) -> None:
        known = [gpu.index for gpu in self.session.latest.of_node(self.node).gpu.gpus]
        if known:
            at = known.index(self.index) if self.index in known else 0
            self.index = known[(at + step) % len(known)]
            self.receive(self.session.latest)
