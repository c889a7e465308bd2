"""The application: takes snapshots from the engine, hands them to the screen on top, ends cleanly."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from sgmon.commands import NO_SERVER
from sgmon.settings import Settings
from sgmon.signals import told_of
from tui_app.cell_app import CellApp
from tui_app.messages import EngineFailed, SnapshotArrived, TerminalGone
from tui_app.notices import notices
from tui_app.overview import Overview
from tui_app.selecting import ends_selection
from tui_app.session import EngineLike, NoServerError, Session
from tui_app.stopping import Watchdog
from tui_app.themes import DEFAULT_THEME, SGMON_DARK, SGMON_LIGHT, SHORT_NAMES, keep

if TYPE_CHECKING:
    from textual.command import CommandListItem, Provider
    from textual.theme import Theme
    from textual.widget import AwaitMount

    from sgmon.model import Snapshot


#: makes a live engine, not started yet; it is given a way to tell people what is wrong with their files
MakeEngine = Callable[[Callable[[str], None]], EngineLike]


def _commands() -> type[Provider]:
    """What the list of ``:`` is made by, imported when it is asked for."""
    from tui_app.palette import Commands

    return Commands


class SgmonApp(CellApp):
    """One screen, painted from snapshots.

    With ``make`` the engine is imported, made and started in a thread when the first frame stands; an engine that is
    there already is started by the caller. Both are stopped by the caller.
    """

    TITLE = "sgmon"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_commands}

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,h,f1", "help", "this help", id="app.help"),
        Binding("colon", "command_palette", "command palette (also ctrl+p)", id="app.palette"),
        Binding("ctrl+s", "report", "report for a bug report: look at it, then write it", id="app.report"),
        Binding("ctrl+r", "save_flight", "save the last minutes as a recording", id="app.flight"),
        Binding("ctrl+q", "quit", "quit at once", id="app.quit"),
        Binding("M", "free_mouse", "leave the mouse to the terminal, to select text; again: take it", id="app.mouse"),
        Binding("ctrl+l", "repaint", "paint the whole screen again", id="app.repaint"),
        Binding("ctrl+z", "suspend_process", "suspend (recording stops too)", show=False, id="app.suspend"),
    ]

    def __init__(
        self, engine: EngineLike | None, settings: Settings | None = None, make: MakeEngine | None = None
    ) -> None:
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.session = Session(engine, settings or Settings())
        self._make = make
        self.ascii_only = self.session.settings.ascii
        self.has_late_answer = False  # the terminal may still say which background it has
        self.terminal_is_light = False  # as far as it has said
        self.refusal = ""  # why there was nothing to watch
        self.watchdog: Watchdog | None = None
        self._running_loop: asyncio.AbstractEventLoop | None = None
        self.register_theme(SGMON_DARK)
        self.register_theme(SGMON_LIGHT)
        wanted = self.session.settings.theme
        wanted = SHORT_NAMES.get(wanted, wanted)
        known = wanted in self.available_themes and not self.no_color  # without colours only ours has none
        self.theme = wanted if known else DEFAULT_THEME

    def run(self, *args: Any, **options: Any) -> int | None:
        """As usual, and SIGTERM and SIGHUP restore the terminal."""
        self.watchdog = Watchdog()
        with told_of((signal.SIGTERM, signal.SIGHUP), lambda number: self.request_stop(128 + number)):
            try:
                return super().run(*args, **options)
            finally:
                self.watchdog.disarm()

    def get_default_screen(self) -> Screen[object]:
        return Overview()

    def on_mount(self) -> None:
        self.set_keymap(self._known_keys())
        self.set_class(self.ascii_only, "-ascii")
        if self._cells is not None and self.has_late_answer:
            self._cells.expect_late_answer()
        self._running_loop = asyncio.get_running_loop()
        self.app_resume_signal.subscribe(self, lambda _: self.action_repaint())
        self.theme_changed_signal.subscribe(self, self._theme_was_chosen)
        self._say_page(self.current_theme)
        self.session.engine.subscribe(self._snapshot_from_engine)
        if self.session.received is not None:
            # The engine runs already: what it published since __init__ looked at it had no subscriber.
            self.post_message(SnapshotArrived(self.session.engine.snapshot))
        if self._make is not None:
            thread = threading.Thread(target=self._make_engine, args=(self._make,), name="make-engine", daemon=True)
            self.call_after_refresh(thread.start)
        theme = self.session.settings.theme
        if theme and theme not in self.available_themes and theme not in SHORT_NAMES:
            self.notify(
                f"no theme {theme!r}; there are: {', '.join(sorted(self.available_themes))}",
                severity="warning",
                markup=False,
            )

    def _known_keys(self) -> dict[str, str]:
        """The user's keys; an id or a key that there is not is said, with the nearest that there is."""
        wanted = dict(self.session.settings.keys)
        if not wanted:
            return {}
        from tui_app.own_keys import checked

        ids = [
            one.id for _, bindings in self.help_sections() for one in bindings if isinstance(one, Binding) and one.id
        ]
        usable, mistakes = checked(wanted, ids)
        for words in mistakes:
            self.notify(f"config: {words}", severity="warning", markup=False)
        return usable

    def _make_engine(self, make: MakeEngine) -> None:
        """In a thread of its own."""
        try:
            engine = make(lambda words: self.notify(words, severity="warning", markup=False, timeout=20))
        except Exception as err:  # noqa: BLE001 - raised again where Textual ends the screen and shows it
            self.post_message(EngineFailed(err))
            return
        engine.subscribe(self._snapshot_from_engine)
        self.session.engine = engine
        engine.start()

    def on_engine_failed(self, message: EngineFailed) -> None:
        if not isinstance(message.error, NoServerError):
            raise message.error
        self.refusal = str(message.error)
        self._arm(NO_SERVER)
        self.exit(return_code=NO_SERVER)

    def _snapshot_from_engine(self, snapshot: Snapshot) -> None:
        """Called in the engine's thread: post only."""
        self.post_message(SnapshotArrived(snapshot))

    def on_snapshot_arrived(self, message: SnapshotArrived) -> None:
        for words, severity in notices(self.session.latest, message.snapshot):
            self.notify(words, severity=severity, markup=False, timeout=8)  # type: ignore[arg-type]
        self.session.received = message.snapshot
        receive = getattr(self.screen, "receive", None)
        if receive is not None and self.screen.children:  # a page that is only just opened paints the newest itself
            receive(message.snapshot)

    async def on_event(self, event: events.Event) -> None:
        """Any key but those that copy ends a selection; Esc then does no more."""
        if self._screen_stack and ends_selection(self.screen, event):
            self.screen.clear_selection()
            if isinstance(event, events.Key) and event.key == "escape":
                return
        await super().on_event(event)

    # ending

    def request_stop(self, return_code: int) -> None:
        """From any thread: ask the loop to end, and make sure that it does. The loop may be blocked on a terminal."""
        self._arm(return_code)
        if self._running_loop is not None:
            self._running_loop.call_soon_threadsafe(lambda: self.exit(return_code=return_code))

    def on_terminal_gone(self, message: TerminalGone) -> None:
        self.request_stop(128 + signal.SIGHUP)

    async def action_quit(self) -> None:
        self._arm(0)
        self.exit(0)

    def action_help_quit(self) -> None:
        """ctrl+c, which many press to leave."""
        self.notify("ctrl+c does not quit: q leaves a page, q twice quits, ctrl+q quits at once", markup=False)

    def _theme_was_chosen(self, theme: Theme) -> None:
        keep(self, theme.name)
        self._say_page(theme)

    def _say_page(self, theme: Theme) -> None:
        """Tell the driver the theme's text and background, which a thin link is spared."""
        from tui_app.output.thin import page_of

        if self._cells is not None:
            system = self.console._color_system
            self._cells.page = page_of(theme, terminal_is_light=self.terminal_is_light, system=system)

    def _arm(self, return_code: int) -> None:
        if self.watchdog is not None:
            self.watchdog.arm(return_code)

    # screens that are not first on stage are imported when asked for

    def action_help(self) -> None:
        from tui_app.help_screen import HelpScreen

        if isinstance(self.screen, HelpScreen):
            return
        here = [type(self.focused).__dict__.get("BINDINGS"), type(self.screen).__dict__.get("BINDINGS")]
        sections = self.help_sections()
        sections.sort(key=lambda section: next((i for i, own in enumerate(here) if own is section[1]), len(here)))
        self.push_screen(HelpScreen(sections))

    def help_sections(self) -> list[tuple[str, Sequence[BindingType]]]:
        """Where keys work, and the bindings there: the help page is made from them."""
        from tui_app.detail_screen import DetailScreen
        from tui_app.gpu_screen import GpuScreen
        from tui_app.lines_screen import LinesScreen
        from tui_app.stack_screen import StackScreen
        from tui_app.why_screen import WhyScreen
        from widgets.gpu import GpuPanel
        from widgets.logview import LogPanel
        from widgets.panel import Panel

        return [
            ("anywhere", SgmonApp.BINDINGS),
            ("overview", Overview.BINDINGS),
            ("in a panel", Panel.BINDINGS),
            ("on the GPUs", GpuPanel.BINDINGS),
            ("in the log", LogPanel.BINDINGS),
            ("on the page of the verdict", [*WhyScreen.BINDINGS, *LinesScreen.BINDINGS]),
            ("on a page of stacks", [*StackScreen.BINDINGS, *LinesScreen.BINDINGS]),
            ("on a worker's page", [*DetailScreen.BINDINGS, *LinesScreen.BINDINGS]),
            ("on a GPU's page", [*GpuScreen.BINDINGS, *LinesScreen.BINDINGS]),
        ]

    def action_command_palette(self) -> None:
        from textual.command import CommandPalette

        if not CommandPalette.is_open(self):
            self.push_screen(CommandPalette(placeholder="Search for commands", id="--command-palette"))

    def search_commands(self, commands: Sequence[CommandListItem], placeholder: str = "") -> AwaitMount:
        return super().search_commands(commands, placeholder.rstrip("…"))  # --ascii

    def action_report(self) -> None:
        from tui_app.report_screen import ReportScreen

        if not isinstance(self.screen, ReportScreen):
            self.push_screen(ReportScreen())

    def action_save_flight(self) -> None:
        if not self.session.engine.save_flight():
            why = ": this is a recording already" if self.session.latest.replay else " yet"
            self.notify(f"nothing to save{why}", markup=False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Everything that a key does here, by its name, most useful first."""
        from tui_app.help_screen import key_names
        from tui_app.palette import in_order

        for active in in_order(screen.active_bindings.values()):
            one = active.binding
            title = one.description[0].upper() + one.description[1:]
            run = partial(self.run_action, one.action, active.node)
            yield SystemCommand(title, f"key {key_names(one)}", run)
        yield SystemCommand("Theme", "Change the colours", self.action_change_theme)
