"""Our own dark theme, made of colours of the xterm 256 palette, so that it looks the same over ssh."""

from __future__ import annotations

from textual.theme import Theme

SGMON_DARK = Theme(
    name="sgmon-dark",
    dark=True,
    primary="#5fafff",
    secondary="#87afd7",
    accent="#87d7ff",
    success="#5fd787",
    warning="#ffaf00",
    error="#ff5f5f",
    foreground="#dadada",
    background="#121212",
    surface="#1c1c1c",
    panel="#303030",
)
DEFAULT_THEME = SGMON_DARK.name
