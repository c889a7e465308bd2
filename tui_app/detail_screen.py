"""Enter on a worker: everything that is known of one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from sgmon.model import Snapshot
from sgmon.servers.registry import role_label
from sgmon.text import clean
from tui_app.lines_screen import LinesScreen
from widgets.detail_lines import detail_lines, process_of
from widgets.line import Line


class DetailScreen(LinesScreen):
    """State, activity, memory, output, sockets, descriptors, and what could not be seen."""

    STEM = "process"
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (("d", "stack"), ("c", "copy"), ("s", "save"))
    BINDINGS: ClassVar[list[BindingType]] = [Binding("d,b", "dump", "stack of this process", id="detail.dump")]

    def __init__(self, pid: int, node: str = "") -> None:
        super().__init__()
        self.pid, self.node = pid, node

    def title_line(self, snapshot: Snapshot) -> Line:
        snapshot = snapshot.of_node(self.node)
        process = process_of(snapshot, self.pid)
        name = clean(process.rank or role_label(snapshot.family, process.role), 24) if process else "gone"
        return (
            (f" {name} ", "title-focus"),
            (f"  pid {self.pid}" + (f" on {clean(self.node, 30)}" if self.node else ""), "strong"),
            ("  everything known about it", "dim"),
        )

    def page_lines(self, snapshot: Snapshot, width: int) -> Sequence[Line]:
        return detail_lines(snapshot.of_node(self.node), self.pid)

    def action_dump(self) -> None:
        from tui_app.stack_screen import StackScreen

        snapshot = self.session.latest.of_node(self.node)
        process = process_of(snapshot, self.pid)
        name = process.rank or role_label(snapshot.family, process.role) if process else str(self.pid)
        self.app.push_screen(StackScreen((self.pid,), name, self.node))
