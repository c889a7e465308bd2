"""``v``: the verdict in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType

from sgmon.model import Snapshot
from tui_app.lines_screen import LinesScreen
from widgets.hints import Hint
from widgets.line import Line
from widgets.why_lines import why_lines

if TYPE_CHECKING:
    from tui_app.overview import Overview

#: a key that a next step names -> its words in the last row
_STEPS = {"d": "stack", "D": "all stacks", "o": "first error"}


class WhyScreen(LinesScreen):
    """All evidence, what was not seen, every next step, and how it came to this. The keys of the steps work here."""

    STEM = "verdict"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d,b", "dump", "stack of the selected worker", id="why.dump"),
        Binding("D", "dump_all", "stacks of all ranks, merged, 3 samples", id="why.dump_all"),
        Binding("o", "log_line", "the line of the log that the verdict names", id="why.log_line"),
    ]

    def title_line(self, snapshot: Snapshot) -> Line:
        return ((" why ", "title-focus"), ("  evidence, what was not seen, next steps, history", "dim"))

    def verdict_line(self, snapshot: Snapshot, width: int) -> Line:
        return (("─" * width, "rule"),)

    def page_lines(self, snapshot: Snapshot, width: int) -> Sequence[Line]:
        return why_lines(snapshot, width - 1)

    def page_hints(self, snapshot: Snapshot) -> Sequence[Hint]:
        named = [(step.key, _STEPS[step.key]) for step in snapshot.verdict.next if step.key in _STEPS]
        return [*named, *self.HINTS]

    @property
    def _overview(self) -> Overview:
        return cast("Overview", self.app.screen_stack[0])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in ("dump", "dump_all", "log_line") or bool(self._overview.panels)

    def action_dump(self) -> None:
        self._overview.action_dump()

    def action_dump_all(self) -> None:
        self._overview.action_dump_all()

    def action_log_line(self) -> None:
        """Back to the overview, at that line."""
        overview = self._overview
        self.dismiss()
        overview.action_log_line()
