"""The dashboard for a visitor: it shows everything and does nothing.

Every key is in one of two lists, and a test holds that none is in neither: who adds a key decides here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from textual.binding import Binding, BindingType
from textual.dom import DOMNode

from tui_app.app import SgmonApp

if TYPE_CHECKING:
    from sgmon.model import Snapshot
    from tui_app.session import EngineLike
    from widgets.log_text import LogText

#: id of a binding -> why a visitor's key does nothing
DENIED: Mapping[str, str] = {
    "app.report": "a report is a file on the server's machine",
    "app.flight": "a recording is a file on the server's machine",
    "app.mouse": "the browser keeps the mouse: select with shift and drag",
    "app.suspend": "a page has no shell",
    "overview.dump": "stacks are taken in a terminal only",
    "overview.dump_all": "stacks are taken in a terminal only",
    "overview.servers": "the server was chosen when sgmon serve was started",
    "overview.copy": "select with shift and drag",
    "overview.copy_view": "select with shift and drag",
    "detail.dump": "stacks are taken in a terminal only",
    "why.dump": "stacks are taken in a terminal only",
    "why.dump_all": "stacks are taken in a terminal only",
    "log.copy": "select with shift and drag",
    "page.copy": "select with shift and drag",
    "page.save": "a page is saved on the server's machine",
    "report.write": "a report is a file on the server's machine",
    "stacks.repeat": "stacks are taken in a terminal only",
    "stacks.native": "stacks are taken in a terminal only",
    "stacks.threads": "stacks are taken in a terminal only",
}
#: ids, or their first part with a star
ALLOWED: tuple[str, ...] = (
    "app.help", "app.palette", "app.quit", "app.repaint",
    "overview.panel*", "overview.next", "overview.previous", "overview.zoom", "overview.freeze", "overview.why",
    "overview.detail", "overview.only_odd", "overview.log_line", "overview.quit", "overview.back", "overview.log.*",
    "log.pageup", "log.pagedown", "log.first", "log.follow", "log.left", "log.right", "log.search", "log.next",
    "log.previous", "log.only", "log.inverse", "log.rank*", "log.node*", "log.error*", "log.warning*",
    "log.milestone*", "log.wrap", "log.clock", "log.noise", "log.every", "log.expand", "log.clear",
    "panel.*", "gpus.choose", "gpu.*", "picker.*", "replay.*",
    "why.log_line", "page.back", "page.up", "page.down", "page.pageup", "page.pagedown", "page.top", "page.bottom",
)  # fmt: skip
#: actions of the denied bindings -> why not. (The log's "copy" and the page's are one word.)
_ACTIONS: Mapping[str, str] = {
    "report": DENIED["app.report"],
    "save_flight": DENIED["app.flight"],
    "free_mouse": DENIED["app.mouse"],
    "suspend_process": DENIED["app.suspend"],
    "dump": DENIED["overview.dump"],
    "dump_all": DENIED["overview.dump_all"],
    "servers": DENIED["overview.servers"],
    "copy": DENIED["page.copy"],
    "copy_view": DENIED["overview.copy_view"],
    "save": DENIED["page.save"],
    "write": DENIED["report.write"],
    "repeat": DENIED["stacks.repeat"],
    "native": DENIED["stacks.native"],
    "threads": DENIED["stacks.threads"],
}
WORDS = "read-only: no stacks, no files, no choice of another server"


class ReadOnlyEngine:
    """An engine that can be looked at only."""

    def __init__(self, engine: EngineLike) -> None:
        self._engine = engine

    @property
    def snapshot(self) -> Snapshot:
        return self._engine.snapshot

    @property
    def log_text(self) -> LogText:
        return self._engine.log_text

    def subscribe(self, subscriber: Callable[[Snapshot], None]) -> None:
        self._engine.subscribe(subscriber)

    def request_stacks(
        self, pids: Sequence[int] | None = None, samples: int = 1, native: bool = False, why: str = ""
    ) -> int | None:
        """Refused."""

    def choose(self, pid: int) -> None:
        """Refused."""

    def save_flight(self) -> bool:
        return False

    def start(self) -> None:
        self._engine.start()

    def stop(self) -> None:
        self._engine.stop()


class ReadOnlyApp(SgmonApp):
    """Denied actions say why, whether they come from a key, the palette or a click."""

    LIMITS = WORDS
    refused_hints = frozenset({"d", "D", "s", "c", "C"})

    def help_sections(self) -> list[tuple[str, Sequence[BindingType]]]:
        """Without the keys that do nothing here."""
        kept = [
            (where, [one for one in bindings if not (isinstance(one, Binding) and one.id in DENIED)])
            for where, bindings in super().help_sections()
        ]
        return [(where, bindings) for where, bindings in kept if where != "on a page of stacks"]

    async def run_action(
        self,
        action: object,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        why = _why_not(action if isinstance(action, str) else action[1])  # type: ignore[index]
        if why:
            self.notify(f"read-only here: {why}", markup=False)
            return True
        return await super().run_action(action, default_namespace, namespaces)  # type: ignore[arg-type]


def is_denied(action: str) -> bool:
    """Whether a visitor may not: "dump", "screen.dump", "log('copy')"."""
    return bool(_why_not(action))


def _why_not(action: str) -> str:
    name, _, rest = action.partition("(")
    if name == "log":  # the overview hands the log's own action on
        name = rest.strip("()'\"")
    return _ACTIONS.get(name.rpartition(".")[2], "")
