"""The first screen: the verdict, five panels, a row of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.reactive import Reactive
from textual.widget import Widget

from sgmon.units import lasting
from tui_app.no_engine import OPENING
from tui_app.overview_hints import BEFORE, LEAVING, LEAVING_REPLAY, has_only_said, panel_hints
from tui_app.overview_keys import ANY_TIME, BINDINGS, PANEL_NAMES
from tui_app.placing import Placing, apply, has_ended
from tui_app.selecting import SelectableScreen
from tui_app.session import Session, session_of
from widgets.hints import KeyHints
from widgets.panel import Panel
from widgets.tabs import PanelTabs
from widgets.verdictbar import VerdictBar
from widgets.waiting import WaitingPanel

if TYPE_CHECKING:
    from sgmon.model import Snapshot
    from widgets.gpu import GpuPanel
    from widgets.logview import LogPanel
    from widgets.workers import WorkersPanel


class Overview(SelectableScreen):
    """Everything on one page; on a small screen one panel at a time (``arrangement``).

    Until there is a server only the waiting page: the panels are imported and mounted with the first one.
    """

    BINDINGS: ClassVar[list[BindingType]] = BINDINGS

    # Textual paints the whole screen when the focus moves; here the panels mark it themselves
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    def __init__(self) -> None:
        super().__init__(classes="-waiting")
        self.verdict = VerdictBar(id="verdict")
        self.tabs = PanelTabs(PANEL_NAMES, id="tabs")
        self.waiting = WaitingPanel(id="waiting")
        self.panels: dict[str, Panel] = {}
        self.body = Container(id="body")
        self.hints = KeyHints(id="hints")
        self.active = "1"
        self.zoomed = False
        self.frozen: Snapshot | None = None
        self._quit_is_asked = False
        self.placing = Placing()

    @property
    def session(self) -> Session:
        return session_of(self.app)

    def compose(self) -> ComposeResult:
        yield self.verdict
        yield self.tabs
        self.waiting.is_started = self.session.settings.is_started
        with self.body:
            yield self.waiting
        yield self.hints

    def on_mount(self) -> None:
        if self.session.received is None:
            self.verdict.set_opening(OPENING)
            self.hints.set_hints((), BEFORE)

    @property
    def worker_panel(self) -> WorkersPanel:
        return cast("WorkersPanel", self.panels["3"])

    def _add_panels(self) -> None:
        from tui_app.panels import make_panels

        self.panels = make_panels(self.session.engine.log_text, has_nodes=bool(self.shown.nodes))
        for panel in self.panels.values():
            panel.step_s = max(1.0, self.session.settings.interval_s)  # nothing is read in between
        self._show_active()
        self.body.mount(*(self.panels[number] for number in ("1", "2", "5", "3", "4")))  # as the grid has them
        self.panels[self.active].focus(scroll_visible=False)
        self.call_after_refresh(self._arrange)  # the panels know by then what they have to show

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self.panels) or action in ANY_TIME or not hasattr(type(self), f"action_{action}")

    def on_screen_resume(self) -> None:
        if self.session.received is not None:
            self.receive(self.session.received)

    # snapshots

    def receive(self, snapshot: Snapshot) -> None:
        """Paint a snapshot; while frozen only say how far behind the view is."""
        if self.frozen is not None:
            self.verdict.set_note(f"FROZEN, {lasting(snapshot.t - self.frozen.t)} behind: space")
            return
        self._paint(snapshot)

    def _paint(self, snapshot: Snapshot) -> None:
        with self.app.batch_update():
            waits = snapshot.server is None and not snapshot.log_only and not has_only_said(snapshot)
            self.set_class(waits, "-waiting")
            if not waits and not self.panels:  # last: each change of a class styles the panels again
                if has_only_said(snapshot):
                    self.active, self.zoomed = "4", True  # the other panels have nothing to show
                self._add_panels()
            self.verdict.receive(snapshot)
            self.waiting.receive(snapshot)
            for panel in self.panels.values():
                panel.receive(snapshot)
            loud = frozenset({"3"}) if snapshot.verdict.odd_ranks else frozenset[str]()
            self.tabs.set_active(self.active, loud)
            self._arrange()
            self._show_hints(snapshot)

    def _arrange(self) -> None:
        """Give every panel its place."""
        if self.has_class("-waiting"):
            _, rows = self.verdict.wanted_rows(self.size.width)
            self.verdict.styles.height = max(2, min(rows, self.size.height // 3))
            return
        if not self.panels or not self.size:
            return
        made = self.placing.arrange(self.panels, self.verdict, self.shown, self.size, self.active, self.zoomed)
        self.tabs.display = made.has_tabs
        apply(made, self.panels, self.verdict)

    def on_resize(self) -> None:
        self._arrange()

    @property
    def shown(self) -> Snapshot:
        """The snapshot on the screen."""
        return self.frozen or self.session.latest

    def _show_hints(self, snapshot: Snapshot) -> None:
        if self._quit_is_asked:
            self.hints.set_hints((), LEAVING_REPLAY if snapshot.replay else LEAVING)
        elif not self.panels:
            self.hints.set_hints((), BEFORE)
        else:
            own, always = panel_hints(
                self.panels[self.active].HINTS,
                snapshot,
                is_zoomed=self.zoomed,
                has_ended=has_ended(snapshot) or has_only_said(snapshot),
            )
            slow = getattr(self.app, "link_words", "")
            self.hints.set_hints(own, always, ((f" {slow} ", "warn"),) if slow else ())

    # panels

    def _show_active(self) -> None:
        self._arrange()
        self.tabs.set_active(self.active, self.tabs.loud)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        for number, panel in self.panels.items():
            if panel is event.widget and number != self.active:
                self.active = number
                self._show_active()
        self._show_hints(self.shown)

    def on_panel_tabs_picked(self, message: PanelTabs.Picked) -> None:
        self._activate(message.number)

    def _activate(self, number: str) -> None:
        self.active = number
        self._show_active()
        if number == "4":
            cast("LogPanel", self.panels["4"]).catch_up()
        self.panels[number].focus(scroll_visible=False)
        self._show_hints(self.shown)

    def action_panel(self, number: str) -> None:
        if number == self.active and self.panels[number].has_focus:
            self.action_zoom()
        else:
            self._activate(number)

    def action_next_panel(self, step: int) -> None:
        numbers = list(self.panels)
        self._activate(numbers[(numbers.index(self.active) + step) % len(numbers)])

    def action_zoom(self) -> None:
        self.zoomed = not self.zoomed
        self._show_active()
        self._show_hints(self.shown)

    def action_freeze(self) -> None:
        if self.frozen is None:
            self.frozen = self.session.latest
            self.verdict.set_note("FROZEN: space")
            return
        self.frozen = None
        self.verdict.set_note("")
        self._paint(self.session.latest)

    def action_only_odd(self) -> None:
        self.worker_panel.toggle_only_odd()

    def action_back(self, may_quit: bool) -> None:
        if self.zoomed and not has_only_said(self.shown):  # there the log alone is where one begins
            self.action_zoom()
        elif self.frozen is not None:
            self.action_freeze()
        elif may_quit and self._quit_is_asked:
            self.app.run_worker(self.app.action_quit())
        elif may_quit:
            self._quit_is_asked = True
            self._show_hints(self.shown)

    def on_key(self, event: events.Key) -> None:
        """Any other key takes a first ``q`` back. A key that needs a server says so while there is none."""
        if event.key != "q":
            self._stay()
        if not self.panels and (words := self._awaits_server(event.key)):
            self.notify(words, markup=False)

    def _awaits_server(self, key: str) -> str:
        """What a key does that waits for a server; "" for any other."""
        found = self._bindings.key_to_bindings.get(key, ())
        name = next((one.description for one in found if not self.check_action(one.action.partition("(")[0], ())), "")
        return f"{name}: there is no server yet" if name else ""

    def on_click(self, event: events.Click) -> None:
        """A click takes a first ``q`` back, too; one on the row of keys presses a key."""
        if event.screen_offset not in self.hints.region:
            self._stay()

    def _stay(self) -> None:
        if self._quit_is_asked:
            self._quit_is_asked = False
            self._show_hints(self.shown)

    def on_verdict_bar_pressed(self, message: VerdictBar.Pressed) -> None:
        """A click on the verdict; on a step that a key does it presses the key."""
        self._stay()
        if message.key:
            self.app.call_later(self.app.simulate_key, message.key)  # a key that we send ourselves stops at us
        else:
            self.action_why()

    def action_log_line(self) -> None:
        number = next((step.line for step in self.shown.verdict.next if step.line is not None), None)
        if number is None:
            self.notify("the verdict names no line of the log", markup=False)
            return
        self._activate("4")
        cast("LogPanel", self.panels["4"]).goto_line(number, *self.shown.verdict.nodes[:1])

    async def action_log(self, action: str) -> None:
        self._activate("4")
        await self.panels["4"].run_action(action)

    # other screens

    def action_dump(self) -> None:
        pids, label = self.worker_panel.selected_pids, self.worker_panel.selected_label
        if not pids:
            self.notify("no worker to look at yet", markup=False)
            return
        from tui_app.stack_screen import StackScreen

        self.app.push_screen(StackScreen(pids, label, self.worker_panel.selected_node))

    def action_dump_all(self) -> None:
        from tui_app.stack_screen import StackScreen

        self.app.push_screen(StackScreen(None, "all ranks"))

    def on_workers_panel_chosen(self, message: WorkersPanel.Chosen) -> None:
        self._detail(message.pid, message.node)

    def action_detail(self) -> None:
        if self.worker_panel.selected_pids:
            self._detail(self.worker_panel.selected_pids[0], self.worker_panel.selected_node)

    def _detail(self, pid: int, node: str) -> None:
        from tui_app.detail_screen import DetailScreen

        self.app.push_screen(DetailScreen(pid, node))

    def on_gpu_panel_chosen(self, message: GpuPanel.Chosen) -> None:
        from tui_app.gpu_screen import GpuScreen

        self.app.push_screen(GpuScreen(message.index, message.node))

    def action_why(self) -> None:
        from tui_app.why_screen import WhyScreen

        self.app.push_screen(WhyScreen())

    def action_servers(self) -> None:
        from tui_app.picker import Picker

        self.app.push_screen(Picker())

    # copying

    def action_copy(self) -> None:
        from tui_app.copying import copy_text, verdict_text

        if self.copy_selection():
            return
        if self.panels and self.worker_panel.has_focus and self.worker_panel.selected_text:
            copy_text(self.app, self.worker_panel.selected_text, self.worker_panel.selected_label)
            return
        copy_text(self.app, verdict_text(self.shown.verdict), "verdict")

    def action_copy_view(self) -> None:
        from tui_app.copying import copy_text, show_plain

        if self.copy_selection():
            return
        shown = [panel for panel in self.panels.values() if panel.is_on_screen]
        text = "\n\n".join([self.verdict.text, *(panel.text for panel in shown)])
        copy_text(self.app, text, "view")
        show_plain(self.app, text)
