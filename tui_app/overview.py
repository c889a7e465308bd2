"""The first screen: the verdict, five panels, a row of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen

from sgmon.units import age
from tui_app.arrangement import Wants, arrange
from tui_app.no_engine import OPENING
from tui_app.session import Session, session_of
from widgets import log_keys
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

_ALWAYS = (("v", "why"), ("space", "freeze"), ("?", "help"), ("q", "quit"))
_BEFORE = (("?", "help"), (":", "commands"), ("q", "quit"))
_REPLAY = (
    ("space", "pause"),
    (".", "step"),
    ("+-", "speed"),
    ("←→", "10 s"),
    ("[]", "change"),
    ("?", "help"),
    ("q", "quit"),
)
_NAMES = (("1", "startup"), ("2", "GPUs"), ("3", "workers"), ("4", "log"), ("5", "port"))
#: what needs no panel; the other actions of the overview wait for a server
_ANY_TIME = frozenset({"why", "servers", "copy_view", "back", "freeze"})
#: the log's own keys work from every panel: they focus the log, then act
LOG_KEYS = tuple(
    Binding(binding.key, f"log({binding.action!r})", binding.description, show=False, id=f"overview.{binding.id}")
    for binding in log_keys.BINDINGS
    if binding.id in log_keys.FROM_ANY_PANEL
)


class Overview(Screen[None]):
    """Everything on one page; on a small screen one panel at a time (``arrangement``).

    Until there is a server only the waiting page: the panels are imported and mounted with the first one.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(n, f"panel('{n}')", f"panel {name}; again: zoom", id=f"overview.panel{n}") for n, name in _NAMES),
        Binding("tab", "next_panel(1)", "next panel", id="overview.next"),
        Binding("shift+tab", "next_panel(-1)", "panel before", id="overview.previous"),
        Binding("z", "zoom", "zoom the panel, or back", id="overview.zoom"),
        Binding("space,p", "freeze", "freeze the view; watching goes on", id="overview.freeze"),
        Binding("v", "why", "why: all evidence, all next steps, history", id="overview.why"),
        Binding("d,b", "dump", "stack of the selected worker", id="overview.dump"),
        Binding("D", "dump_all", "stacks of all ranks, merged, 3 samples", id="overview.dump_all"),
        Binding("enter", "detail", "the selected worker in full", id="overview.detail"),
        Binding("x", "only_odd", "only workers that differ", id="overview.only_odd"),
        Binding("s", "servers", "pick another server", id="overview.servers"),
        Binding("c", "copy", "copy the verdict, or the selected worker", id="overview.copy"),
        Binding("o", "log_line", "the line of the log that the verdict names", id="overview.log_line"),
        Binding(
            "C",
            "copy_view",
            "the view as text: copied, saved, printed",
            id="overview.copy_view",
        ),
        Binding("q", "back(True)", "back; twice on the overview: quit", id="overview.quit"),
        Binding("escape", "back(False)", "back (from zoom, from a frozen view)", id="overview.back"),
        *LOG_KEYS,
    ]

    def __init__(self) -> None:
        super().__init__(classes="-waiting")
        self.verdict = VerdictBar(id="verdict")
        self.tabs = PanelTabs(_NAMES, id="tabs")
        self.waiting = WaitingPanel(id="waiting")
        self.panels: dict[str, Panel] = {}
        self.body = Container(id="body")
        self.hints = KeyHints(id="hints")
        self.active = "1"
        self.zoomed = False
        self.frozen: Snapshot | None = None
        self._quit_is_asked = False
        self._wanted: dict[str, int] = {}  # by panel, since the situation was another
        self._situation: tuple[object, ...] = ()

    @property
    def session(self) -> Session:
        return session_of(self.app)

    def compose(self) -> ComposeResult:
        yield self.verdict
        yield self.tabs
        with self.body:
            yield self.waiting
        yield self.hints

    def on_mount(self) -> None:
        if self.session.received is None:
            self.verdict.set_opening(OPENING)
            self.hints.set_hints((), _BEFORE)

    @property
    def worker_panel(self) -> WorkersPanel:
        return cast("WorkersPanel", self.panels["3"])

    def _add_panels(self) -> None:
        from tui_app.panels import make_panels

        self.panels = make_panels(self.session.engine.log_text)
        for panel in self.panels.values():
            panel.step_s = max(1.0, self.session.settings.interval_s)  # nothing is read in between
        self._show_active()
        self.body.mount(*(self.panels[number] for number in ("1", "2", "5", "3", "4")))  # as the grid has them
        self.panels[self.active].focus(scroll_visible=False)
        self.call_after_refresh(self._arrange)  # the panels know by then what they have to show

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self.panels) or action in _ANY_TIME or not hasattr(type(self), f"action_{action}")

    def on_screen_resume(self) -> None:
        if self.session.received is not None:
            self.receive(self.session.received)

    # snapshots

    def receive(self, snapshot: Snapshot) -> None:
        """Paint a snapshot; while frozen only say how far behind the view is."""
        if self.frozen is not None:
            self.verdict.set_note(f"FROZEN, {age(snapshot.t - self.frozen.t)} behind: space")
            return
        self._paint(snapshot)

    def _paint(self, snapshot: Snapshot) -> None:
        with self.app.batch_update():
            waits = snapshot.server is None and not snapshot.log_only
            self.set_class(waits, "-waiting")
            if not waits and not self.panels:  # last: each change of a class styles the panels again
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
        """Give every panel its place. Rows once wanted stay until the situation changes: a calm screen stays."""
        snapshot, (width, height) = self.shown, self.size
        if not self.panels or not width or self.has_class("-waiting"):
            return
        verdict = snapshot.verdict
        server = snapshot.server.pid if snapshot.server is not None else 0
        situation = (width, height, verdict.state, verdict.odd_ranks, server, len(snapshot.ranks))
        if situation != self._situation:
            self._situation, self._wanted = situation, {}
        for number, panel in self.panels.items():
            across = panel.size.width or width
            asked = 0 if number == "4" else panel.wants(across, height // 3)  # the log takes what is left
            self._wanted[number] = max(self._wanted.get(number, 0), asked)
        least, most = self.verdict.wanted_rows(width)
        self._wanted["verdict"] = max(self._wanted.get("verdict", 0), most)
        has_ended = verdict.state == "crashed" or (bool(self.panels["3"].view) and _has_ended(snapshot))
        rows = {number: self._wanted[number] or _guess(number, snapshot) for number in self.panels}
        wants = Wants(least, self._wanted["verdict"], rows, has_ended)
        made = arrange(width, height, wants, self.active, self.zoomed)
        for number in "3", "2":  # a table that folds because it does not get all its rows needs fewer
            if (place := made.places.get(number)) is not None and (fits := self.panels[number].wants(*place[2:])):
                rows[number] = min(rows[number], fits)
        made = arrange(width, height, wants, self.active, self.zoomed)
        self.verdict.styles.height = made.verdict
        self.tabs.display = made.has_tabs
        for number, panel in self.panels.items():
            place = made.places.get(number)
            panel.display = place is not None
            if place is not None:
                panel.styles.offset = (place.x, place.y)
                panel.styles.width, panel.styles.height = place.width, place.height

    def on_resize(self) -> None:
        self._arrange()

    @property
    def shown(self) -> Snapshot:
        """The snapshot on the screen."""
        return self.frozen or self.session.latest

    def _show_hints(self, snapshot: Snapshot) -> None:
        if self._quit_is_asked:
            self.hints.set_hints((), (("q", "again quits; the watch ends"), ("esc", "stay")))
        elif not self.panels:
            self.hints.set_hints((), _BEFORE)
        else:
            self._show_panel_hints(snapshot)

    def _show_panel_hints(self, snapshot: Snapshot) -> None:
        own = list(self.panels[self.active].HINTS)
        if _has_ended(snapshot):  # nothing is left to take a stack of
            own = [hint for hint in own if hint[0] not in ("d", "D")]
        if any(step.key == "o" for step in snapshot.verdict.next):
            own.insert(0, ("o", "first error"))
        if len(snapshot.candidates) > 1:
            own.insert(0, ("s", f"{len(snapshot.candidates)} servers"))
        own.append(("z", "unzoom" if self.zoomed else "zoom"))
        slow = getattr(self.app, "link_words", "")
        words = ((f" {slow} ", "warn"),) if slow else ()
        self.hints.set_hints(own, _REPLAY if snapshot.replay else _ALWAYS, words)

    # panels

    def _show_active(self) -> None:
        for number, panel in self.panels.items():
            panel.set_class(number == self.active, "-active")
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
        if self.zoomed:
            self.action_zoom()
        elif self.frozen is not None:
            self.action_freeze()
        elif may_quit and self._quit_is_asked:
            self.app.run_worker(self.app.action_quit())
        elif may_quit:
            self._quit_is_asked = True
            self._show_hints(self.shown)

    def on_key(self, event: events.Key) -> None:
        """Any other key takes a first ``q`` back."""
        if self._quit_is_asked and event.key != "q":
            self._quit_is_asked = False
            self._show_hints(self.shown)

    def on_verdict_bar_pressed(self) -> None:
        """A click on the verdict."""
        self.action_why()

    def action_log_line(self) -> None:
        number = next((step.line for step in self.shown.verdict.next if step.line is not None), None)
        if number is None:
            self.notify("the verdict names no line of the log", markup=False)
            return
        self._activate("4")
        nodes = self.shown.verdict.nodes
        cast("LogPanel", self.panels["4"]).goto_line(number, nodes[0] if nodes else "")

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

        self.app.push_screen(StackScreen(pids, label))

    def action_dump_all(self) -> None:
        from tui_app.stack_screen import StackScreen

        self.app.push_screen(StackScreen(None, "all ranks"))

    def on_workers_panel_chosen(self, message: WorkersPanel.Chosen) -> None:
        self._detail(message.pid)

    def action_detail(self) -> None:
        if self.worker_panel.selected_pids:
            self._detail(self.worker_panel.selected_pids[0])

    def _detail(self, pid: int) -> None:
        from tui_app.detail_screen import DetailScreen

        self.app.push_screen(DetailScreen(pid))

    def on_gpu_panel_chosen(self, message: GpuPanel.Chosen) -> None:
        from tui_app.gpu_screen import GpuScreen

        self.app.push_screen(GpuScreen(message.index))

    def action_why(self) -> None:
        from tui_app.why_screen import WhyScreen

        self.app.push_screen(WhyScreen())

    def action_servers(self) -> None:
        from tui_app.picker import Picker

        self.app.push_screen(Picker())

    # copying

    def action_copy(self) -> None:
        from tui_app.copying import copy_text

        if self.panels and self.worker_panel.has_focus and self.worker_panel.selected_text:
            copy_text(self.app, self.worker_panel.selected_text, self.worker_panel.selected_label)
            return
        verdict = self.shown.verdict
        rows = [f"{verdict.state}: {verdict.headline}"]
        rows += [f"  {item.signal}: {item.text}" for item in verdict.evidence]
        rows += [f"  next: {step.text}" + (f": {step.command}" if step.command else "") for step in verdict.next]
        copy_text(self.app, "\n".join(rows), "verdict")

    def action_copy_view(self) -> None:
        from tui_app.copying import copy_text, show_plain

        shown = [panel for panel in self.panels.values() if panel.is_on_screen]
        text = "\n\n".join([self.verdict.text, *(panel.text for panel in shown)])
        copy_text(self.app, text, "view")
        show_plain(self.app, text)


def _guess(number: str, snapshot: Snapshot) -> int:
    """Rows of a panel that has shown nothing yet, so that the layout does not jump when the ranks start."""
    ranks = len(snapshot.ranks)
    if snapshot.server is not None:
        args = snapshot.server.args
        ranks = max(ranks, args.tp * args.pp // max(1, args.nnodes))
    return {"1": 7, "2": 2 + ranks, "3": 4 + ranks, "5": 4}.get(number, 0)


def _has_ended(snapshot: Snapshot) -> bool:
    return bool(snapshot.clocks) and not any(process.alive for process in snapshot.procs.processes)
