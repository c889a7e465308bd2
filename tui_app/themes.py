"""Our two themes. Colours are of the xterm 256 palette, so that they look the same over ssh; the background and the
text are the terminal's own. ``sgmon-*`` variables are colours that ``widgets.styles`` would otherwise have to mix."""

from __future__ import annotations

from textual.theme import BUILTIN_THEMES, Theme

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
