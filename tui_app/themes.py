"""Our two themes. Colours are of the xterm 256 palette, so that they look the same over ssh; the background and the
text are the terminal's own. ``sgmon-*`` variables are colours that ``widgets.styles`` would otherwise have to mix."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from textual.theme import BUILTIN_THEMES, Theme

if TYPE_CHECKING:
    from textual.app import App

SGMON_DARK = Theme(
    name="sgmon-dark",
    dark=True,
    ansi=True,
    primary="#5fafff",
    secondary="#87afd7",
    accent="#87d7ff",
    success="#5fd787",
    warning="#ffaf00",
    error="#ff8787",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    variables={
        **BUILTIN_THEMES["ansi-dark"].variables,
        "sgmon-dim": "#a8a8a8",
        "sgmon-rule": "#585858",
        "sgmon-track": "#808080",
        "sgmon-cursor": "#303030",
    },
)
SGMON_LIGHT = Theme(
    name="sgmon-light",
    dark=False,
    ansi=True,
    primary="#005faf",
    secondary="#005f87",
    accent="#5f00af",
    success="#005f00",
    warning="#875f00",
    error="#af0000",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    variables={
        **BUILTIN_THEMES["ansi-light"].variables,
        "sgmon-dim": "#585858",
        "sgmon-rule": "#b2b2b2",
        "sgmon-track": "#808080",
        "sgmon-cursor": "#e4e4e4",
    },
)
DEFAULT_THEME = SGMON_DARK.name
#: other words for a theme
SHORT_NAMES = {"": DEFAULT_THEME, "auto": DEFAULT_THEME, "dark": DEFAULT_THEME, "light": SGMON_LIGHT.name}


def keep(app: App[int], name: str) -> None:
    """The user chose another theme: the next start has it too. In a thread: a home folder may hang."""

    def write() -> None:
        from sgmon.config import ConfigError, keep_theme, theme_path

        try:
            winner = keep_theme(name)
        except (OSError, ConfigError) as err:
            app.notify(f"theme {name}, not kept for the next start: {err}", severity="warning", markup=False)
            return
        words = f"the next start has what {winner} says" if winner else f"kept for the next start in {theme_path()}"
        app.notify(f"theme {name}: {words}", markup=False)

    threading.Thread(target=write, name="keep-theme", daemon=True).start()
