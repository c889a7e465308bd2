"""The base of all panels: select from a snapshot, paint when it changed, fail alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual import events
from textual.binding import Binding, BindingType

from sgmon.text import clean
from sgmon.units import lasting
from widgets.line import Line, Span, crop, join_ends, width_of
from widgets.painted import Painted

if TYPE_CHECKING:
    from sgmon.model import Snapshot

View = TypeVar("View")


class Panel(Painted, Generic[View], can_focus=True):
    """A numbered panel: one title row, then rows.

    A subclass gives ``select`` (pure: a small comparable value from a snapshot) and ``paint`` (pure: rows for
    a width and a height). The base calls ``paint`` only when the view, the size or the selected row changed,
    not at all while hidden, and shows an error in place of the rows when either raises.
    """

    NUMBER: ClassVar[str] = ""
    TITLE: ClassVar[str] = ""
    PROBE: ClassVar[str] = ""  # the probe that feeds this panel; its silence shows in the title
    READS: ClassVar[tuple[str, ...]] = ()  # parts of a snapshot that select looks at; () when it looks at more
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = ()  # (key, word) for the footer while focused

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up one row", show=False, id="panel.up"),
        Binding("down,j", "move(1)", "down one row", show=False, id="panel.down"),
        Binding("g,home", "move(-9999)", "first row", show=False, id="panel.first"),
        Binding("G,end", "move(9999)", "last row", show=False, id="panel.last"),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.names_itself = True  # not where the name stands in a row of tabs already
        self.step_s = 1.0  # ages are counted on after this, seconds
        self.snapshot: Snapshot | None = None
        self.view: View | None = None
        self.failure: str = ""
        self.top = 0  # rows scrolled away
        self.fixed_rows = 0  # rows at the top of paint's answer that do not scroll
        self._painted: tuple[object, ...] = ()
        self._selected: Snapshot | None = None
        self._late = ""
        self._wanted_of: tuple[object, ...] = ()
        self._wanted: dict[tuple[int, int], int] = {}  # by width and height, for ``_wanted_of``

    # what a subclass gives

    def select(self, snapshot: Snapshot) -> View:
        """What this panel needs to know: small and comparable."""
        raise NotImplementedError

    def paint(self, view: View, width: int, height: int) -> Sequence[Line]:
        """The rows under the title. More than ``height`` may be returned; the panel scrolls them."""
        raise NotImplementedError

    def heading(self, view: View) -> Line:
        """What stands in the title row after the name."""
        return ()

    def short_heading(self, view: View) -> Line:
        """What stands there where the heading has no room."""
        return self.heading(view)

    def corner(self, view: View) -> Line:
        """What stands at the right end of the title row."""
        return ()

    def wanted_rows(self, view: View, width: int, room: int) -> int:
        """Rows under the title that show everything, or all that ``room`` rows can hold."""
        return len(self.paint(view, width, room))

    # what the screen calls

    def wants(self, width: int, height: int) -> int:
        """Rows of ``height`` that the panel would fill, its title included; 0 while it has nothing to show.

        The answer is kept while the view and the state of the rows are equal: it may cost as much as painting.
        """
        if self.view is None:
            return 0
        state = (self.view, self.state_of_rows())
        if state != self._wanted_of:
            self._wanted_of, self._wanted = state, {}
        rows = self._wanted.get((width, height))
        if rows is None:
            rows = self._wanted[width, height] = 1 + self.wanted_rows(self.view, width, height - 1)
        return rows

    def fills(self, width: int, height: int) -> int:
        """Rows of ``height`` that it can fill, with what is shown only where there is room; its title included."""
        return height

    def receive(self, snapshot: Snapshot) -> None:
        """A new snapshot. Nothing happens while the panel is hidden; it catches up when shown."""
        self.snapshot = snapshot
        if self.is_on_screen:
            self.update_view()

    @property
    def is_on_screen(self) -> bool:
        """Whether the panel has a place on the screen now."""
        return self.display and self.size.width > 0 and self.size.height > 0

    def update_view(self) -> None:
        """Select and paint, if anything changed. The border where a panel's own errors stop."""
        if self.snapshot is None:
            return
        try:
            if self.view is None or not self._same_for_us(self.snapshot):
                self.view, self._selected = self.select(self.snapshot), self.snapshot
            late = self.lateness(self.snapshot)
            looks = (self.has_focus, self.names_itself)
            state = (self.view, self.size, self.top, looks, late, self.state_of_rows())
            if state == self._painted:
                return
            self._painted, self._late, self.failure = state, late, ""
            self.show_lines(self.compose_rows(self.view))
        except Exception as error:
            if os.environ.get("SGMON_STRICT_PANELS"):
                raise
            self.failure = f"{type(error).__name__}: {clean(str(error), 200)}"
            self._painted, self.view = (), None
            self.show_lines(self.error_lines())

    def _same_for_us(self, snapshot: Snapshot) -> bool:
        """Whether select would see nothing new: the same parts, within the same step of time (parts are shared)."""
        old = self._selected
        if old is None or not self.READS or old.t // self.step_s != snapshot.t // self.step_s:
            return False
        return all(getattr(old, name) is getattr(snapshot, name) for name in self.READS)

    def state_of_rows(self) -> object:
        """More that decides what is painted, such as the selected row."""
        return None

    def compose_rows(self, view: View) -> list[Line]:
        """Title and the visible rows."""
        room = max(0, self.size.height - 1)
        rows = list(self.paint(view, self.size.width, room))
        if self._late:  # old values look old
            rows = [tuple((text, "dim") for text, _ in row) for row in rows]
        fixed, rows = rows[: self.fixed_rows], rows[self.fixed_rows :]
        room = max(0, room - len(fixed))
        if not room:  # a title alone: there is no place in its rows
            self.top = 0
        self.top = max(0, min(self.top, len(rows) - room))
        hidden = len(rows) - room - self.top
        more: Line = ((f" ▼ {hidden} more ", "info"),) if hidden > 0 else ()
        if self.top:
            more = ((f" ▲ {self.top} ", "info"), *more)
        return [self.title_row(view, more), *fixed, *rows[self.top : self.top + room]]

    def title_row(self, view: View | None, more: Line = ()) -> Line:
        """ "─1 startup── heading ─────── corner─"; the focused one is marked by a glyph too."""
        name: Span = (
            f"{'▸' if self.has_focus else ' '}{self.NUMBER} {self.TITLE} ",
            "title-focus" if self.has_focus else "title",
        )
        left: Line = (name, (" ", "")) if self.names_itself else ((" ", ""),)
        right: Line = more
        if view is not None:
            right = (*self.corner(view), *more)
            heading = self.heading(view)
            if width_of((*left, *heading, *right)) + 2 > self.size.width:
                heading = self.short_heading(view)
            left = (*left, *heading, (" ", "")) if heading else left
        if self._late:
            right = (*right, (f" {self._late} ", "warn"))
        width = self.size.width
        if right and width_of(right) + 14 > width:
            right = crop(right, max(0, width - 14))
        if self._late:  # that the rows are old matters more than the heading
            left = crop(left, max(0, width - width_of(right) - 1))
        return join_ends(left, right, width, ("─", "rule"))

    def lateness(self, snapshot: Snapshot) -> str:
        """ "no answer for 12s" when the probe behind this panel is silent."""
        for probe in snapshot.probes:
            if probe.name != self.PROBE:
                continue
            if probe.in_flight_since_t is not None and snapshot.t - probe.in_flight_since_t > 3:
                return f"{self.probe_label()} silent for {lasting(snapshot.t - probe.in_flight_since_t)}"
            if probe.error:
                return f"{self.probe_label()} failed: {clean(probe.error, 60)}"
            if probe.last_ok_t is not None and snapshot.t - probe.last_ok_t > self.stale_after_s():
                return f"as of {lasting(snapshot.t - probe.last_ok_t)} ago"
        return ""

    def probe_label(self) -> str:
        """What the probe is called on screen."""
        return self.PROBE

    def stale_after_s(self) -> float:
        """How old an answer may be before the title says so."""
        return float("inf")  # many probes say nothing while nothing changes

    def error_lines(self) -> list[Line]:
        """What shows when select or paint raised."""
        return [
            self.title_row(None),
            (("this panel failed: ", "bad"), (self.failure, "")),
            (("the rest goes on; a newer snapshot may bring it back", "dim"),),
        ]

    # keys and looks

    def action_move(self, rows: int) -> None:
        """Scroll by rows; a panel with a cursor moves that instead."""
        self.top = max(0, self.top + rows)
        self.update_view()

    def on_resize(self, event: events.Resize) -> None:
        self._painted = ()
        self.update_view()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_move(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_move(-1)

    def on_show(self, event: events.Show) -> None:
        self.update_view()

    def watch_has_focus(self, has_focus: bool) -> None:
        """No style of ours depends on the focus, and to look for one costs more than the rows."""
        self.update_view()

    def on_focus(self, event: events.Focus) -> None:
        self._focus_moved(event, has_focus=True, told=events.DescendantFocus(self))

    def on_blur(self, event: events.Blur) -> None:
        self._focus_moved(event, has_focus=False, told=events.DescendantBlur(self))

    def _focus_moved(self, event: events.Event, *, has_focus: bool, told: events.Event) -> None:
        """As Textual does it, but that it paints all rows: those that change are painted by ``watch_has_focus``."""
        event.prevent_default()
        self.has_focus = has_focus
        if self.parent is not None:
            self.parent.post_message(told)
