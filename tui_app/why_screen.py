"""``v``: the verdict in full."""

from __future__ import annotations

from collections.abc import Sequence

from sgmon.model import Snapshot
from tui_app.lines_screen import LinesScreen
from widgets.line import Line
from widgets.why_lines import why_lines


class WhyScreen(LinesScreen):
    """All evidence, what was not seen, every next step, and how it came to this."""

    STEM = "verdict"

    def title_line(self, snapshot: Snapshot) -> Line:
        return ((" why ", "title-focus"), ("  evidence, what was not seen, next steps, history", "dim"))

    def verdict_line(self, snapshot: Snapshot, width: int) -> Line:
        return (("─" * width, "rule"),)

    def page_lines(self, snapshot: Snapshot, width: int) -> Sequence[Line]:
        return why_lines(snapshot, width - 1)
