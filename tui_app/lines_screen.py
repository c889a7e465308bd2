"""The base of pages over the overview: a title, lines that scroll, a row of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from sgmon.model import Snapshot
from sgmon.units import state_age
from tui_app.selecting import SelectableScreen
from tui_app.session import Session, session_of
from widgets.hints import Hint, KeyHints
from widgets.line import Line, join_ends
from widgets.lines_view import LinesView
from widgets.painted import Painted
from widgets.states import state_style


class LinesScreen(SelectableScreen):
    """A subclass gives ``title_line`` and ``page_lines``; both are pure in the snapshot.

    The rows are painted again when ``select`` gives something else than before, the title with every snapshot.
    """

    STEM: ClassVar[str] = "page"  # of the file that ``s`` writes
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (("c", "copy"), ("s", "save"))
    ALWAYS: ClassVar[tuple[tuple[str, str], ...]] = (("↑↓", "scroll"), ("?", "help"), ("q", "back"))

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape,backspace", "back", "back", id="page.back"),
        Binding("c", "copy", "copy this page", id="page.copy"),
        Binding("s", "save", "save this page as a text file", id="page.save"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.title_row = Painted(id="page-title")
        self.lines = LinesView(id="page-lines")
        self.hints = KeyHints(id="hints")
        self._painted: object = None  # width and selection of the rows that are shown

    @property
    def session(self) -> Session:
        return session_of(self.app)

    def compose(self) -> ComposeResult:
        yield self.title_row
        yield self.lines
        yield self.hints

    def on_mount(self) -> None:
        self.lines.focus(scroll_visible=False)
        self.receive(self.session.latest)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.receive, self.session.latest)

    def receive(self, snapshot: Snapshot) -> None:
        """A new snapshot, also while the overview is frozen."""
        if not self.children:  # the application ends before this page was opened
            return
        width = self.size.width
        selected = (width, self.select(snapshot))
        if selected != self._painted:
            self._painted = selected
            self.lines.show_page(self.page_lines(snapshot, max(20, width)))
        self.title_row.show_lines([self.title_line(snapshot), self.verdict_line(snapshot, width)])
        self.hints.set_hints(self.page_hints(snapshot), self.ALWAYS, ((self.lines.position + " ", "dim"),))

    def page_hints(self, snapshot: Snapshot) -> Sequence[Hint]:
        """The page's own keys that the last row names."""
        return self.HINTS

    def select(self, snapshot: Snapshot) -> object:
        """What the rows are made of, to be compared; without a selection each snapshot paints them."""
        return object()

    def title_line(self, snapshot: Snapshot) -> Line:
        """What this page is about."""
        raise NotImplementedError

    def page_lines(self, snapshot: Snapshot, width: int) -> Sequence[Line]:
        """The rows."""
        raise NotImplementedError

    def verdict_line(self, snapshot: Snapshot, width: int) -> Line:
        """The verdict stays in sight on every page."""
        from sgmon.text import clean

        look = state_style(snapshot.verdict.state)
        left: Line = (
            (f" {look.glyph} {look.word} ", look.text_style),
            (clean(snapshot.verdict.headline, 300), "dim"),
        )
        return join_ends(
            left,
            ((f" {state_age(snapshot.verdict.state, snapshot.t - snapshot.verdict.since_t)} ", "dim"),),
            width,
        )

    def action_back(self) -> None:
        self.dismiss()

    def action_copy(self) -> None:
        if self.copy_selection():
            return
        from tui_app.copying import copy_text

        copy_text(self.app, self.lines.page_text, "page")

    def action_save(self) -> None:
        from tui_app.copying import save_text

        save_text(self.app, self.lines.page_text, self.STEM)
