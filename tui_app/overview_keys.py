"""The keys of the overview, and the names of its panels."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from widgets import log_keys

PANEL_NAMES = (("1", "startup"), ("2", "GPUs"), ("3", "workers"), ("4", "log"), ("5", "port"))
#: what needs no panel; the other actions of the overview wait for a server
ANY_TIME = frozenset({"why", "servers", "copy", "copy_view", "back", "freeze"})
#: the log's own keys work from every panel: they focus the log, then act
LOG_KEYS = tuple(
    Binding(binding.key, f"log({binding.action!r})", binding.description, show=False, id=f"overview.{binding.id}")
    for binding in log_keys.BINDINGS
    if binding.id in log_keys.FROM_ANY_PANEL
)
BINDINGS: list[BindingType] = [
    *(Binding(n, f"panel('{n}')", f"panel {name}; again: zoom", id=f"overview.panel{n}") for n, name in PANEL_NAMES),
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
    Binding("c", "copy", "copy the selection, worker or verdict", id="overview.copy"),
    Binding("o", "log_line", "the line of the log that the verdict names", id="overview.log_line"),
    Binding("C", "copy_view", "the view as text: copied, saved, printed", id="overview.copy_view"),
    Binding("q", "back(True)", "back; twice on the overview: quit", id="overview.quit"),
    Binding("escape", "back(False)", "back (from zoom, from a frozen view)", id="overview.back"),
    *LOG_KEYS,
]
