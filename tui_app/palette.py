"""The list of ``:``: what a key does here, most useful first."""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import Binding
from textual.command import DiscoveryHit, Hits
from textual.screen import ActiveBinding
from textual.system_commands import SystemCommandsProvider

#: actions that only move, by their names: a key is nearer than a list
_MOVES = frozenset({"move", "scroll_by", "page", "sideways", "first", "panel", "next_panel", "turn"})


class Commands(SystemCommandsProvider):
    """Textual's own, in the order in which the application gives them instead of that of the alphabet."""

    async def discover(self) -> Hits:
        for name, words, run, discover in self.app.get_system_commands(self.screen):
            if discover:
                yield DiscoveryHit(name, run, help=words)


def in_order(active: Iterable[ActiveBinding]) -> list[ActiveBinding]:
    """One binding for each action: the focused panel's, the page's, the application's, then those that only move and
    what Textual binds on each screen."""
    first: dict[str, ActiveBinding] = {}
    for one in active:
        if one.binding.description and one.binding.action != "command_palette":
            first.setdefault(one.binding.action, one)
    return sorted(first.values(), key=lambda one: _comes_last(one.binding))


def _comes_last(binding: Binding) -> bool:
    return binding.action.partition("(")[0] in _MOVES or binding.action.startswith("screen.")
