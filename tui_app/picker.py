"""``s``: several servers on one machine; pick the one to watch."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from sgmon.model import Candidate, Snapshot
from sgmon.servers.registry import get
from sgmon.text import clean
from sgmon.units import lasting, plural
from tui_app.session import Session, session_of
from widgets.hints import KeyHints
from widgets.painted import Painted


class Picker(Screen[None]):
    """A list; the watched one is marked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "back", "back", id="picker.back"),
        Binding("j", "down", "down", show=False, id="picker.down"),
        Binding("k", "up", "up", show=False, id="picker.up"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.title_row = Painted(id="page-title")
        self.options = OptionList(id="picker-list", markup=False)
        self.hints = KeyHints(id="hints")
        self._shown: tuple[Candidate, ...] | None = None

    @property
    def session(self) -> Session:
        return session_of(self.app)

    def compose(self) -> ComposeResult:
        yield self.title_row
        yield self.options
        yield self.hints

    def on_mount(self) -> None:
        self.options.focus()
        self.call_after_refresh(self.receive, self.session.latest)

    def receive(self, snapshot: Snapshot) -> None:
        """List the servers; the list is left alone while it is the same."""
        where = "ran beside the recording; it holds one of them" if snapshot.replay else "on this machine"
        words = f"  {plural(len(snapshot.candidates), 'server')} {where}" if snapshot.candidates else "  none found"
        self.title_row.show_lines([((" servers ", "title-focus"), (words, "dim"))])
        own = (("↑↓", "move"),) if snapshot.replay else (("↑↓", "move"), ("↵", "watch"))
        self.hints.set_hints(own, (("?", "help"), ("q", "back")))
        if snapshot.candidates == self._shown:
            return
        self._shown = snapshot.candidates
        watched = snapshot.server.pid if snapshot.server else None
        self.options.clear_options()
        for item in snapshot.candidates:
            self.options.add_option(Option(candidate_text(item, watched, snapshot), id=str(item.pid)))
            if item.pid == watched:
                self.options.highlighted = self.options.option_count - 1

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        if event.option.id is not None:
            self.session.engine.choose(int(event.option.id))
        self.dismiss()

    def action_back(self) -> None:
        self.dismiss()

    def action_down(self) -> None:
        self.options.action_cursor_down()

    def action_up(self) -> None:
        self.options.action_cursor_up()


def candidate_text(item: Candidate, watched: int | None, snapshot: Snapshot) -> Content:
    """One row: family, port, model, age, pid, command line."""
    up = "" if item.started_epoch is None else f"up {lasting(snapshot.epoch + snapshot.t - item.started_epoch)}"
    port = "port ?" if item.port is None else f"port {item.port}"
    model = clean(item.model.rstrip("/").rsplit("/", 1)[-1], 40) or "model ?"
    mark = "watched now" if item.pid == watched else ""
    family = get(item.family).label if item.family else ""
    row = f"{family:<7} {port:<11} {model:<30} {up:<12} pid {item.pid:<9} {mark:<12} {clean(item.title, 200)}"
    return Content(row)
