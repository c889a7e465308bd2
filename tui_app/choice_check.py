"""``sgmon config``: what of the user's choices only the screen can check, and the ids of its keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from textual.binding import Binding
from textual.theme import BUILTIN_THEMES

from tui_app.app import SgmonApp
from tui_app.help_screen import key_names
from tui_app.no_engine import NoEngine
from tui_app.own_keys import checked, clashes
from tui_app.themes import SGMON_DARK, SGMON_LIGHT, SHORT_NAMES


def mistakes(theme: str, keys: Mapping[str, str], theme_from: str = "") -> list[str]:
    """A sentence on each choice that the screen cannot use. theme_from: the file or variable that names the theme."""
    themes = {SGMON_DARK.name, SGMON_LIGHT.name, *BUILTIN_THEMES}
    found = checked(keys, [str(one.id) for _, one in _bindings()])[1] if keys else []
    found += clashes(keys, ((where, str(one.id), one.key) for where, one in _bindings())) if keys else []
    if theme and theme not in themes and theme not in SHORT_NAMES:
        where = f"{theme_from}: " if theme_from else ""
        found.insert(0, f"{where}no theme {theme!r}; there are: auto, dark, light, {', '.join(sorted(themes))}")
    return found


def key_rows() -> Iterator[str]:
    """Id, keys, meaning and place of everything that a key does."""
    rows = [(str(one.id), key_names(one), f"{one.description} ({where})") for where, one in _bindings()]
    rows = list(dict.fromkeys(rows))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, keys, words in rows:
        yield f"{name:<{widths[0]}}  {keys:<{widths[1]}}  {words}"


def _bindings() -> Iterator[tuple[str, Binding]]:
    for where, bindings in SgmonApp(NoEngine()).help_sections():
        for one in bindings:
            if isinstance(one, Binding) and one.id:
                yield where, one
