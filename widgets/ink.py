"""The style names that a line may use, made of the theme's colours.

A table here and not component classes in CSS: Textual keeps a node for each class of each widget and matches every
rule against it whenever styles change, which came to 20 ms, five times before the first frame and at every key that
moves the focus.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rich.style import Style
from textual.color import Color


class Ink(NamedTuple):
    """Names of theme variables. share: how much of the colour, the rest is what lies under it."""

    color: str = ""
    under: str = ""
    share: float = 1.0
    bold: bool = False
    reverse: bool = False


INKS: Mapping[str, Ink] = {
    "dim": Ink("foreground", share=0.62),
    "rule": Ink("foreground", share=0.35),
    "track": Ink("foreground", share=0.35),
    "strong": Ink(bold=True),
    "ok": Ink("success"),
    "warn": Ink("warning"),
    "odd": Ink("warning", bold=True),
    "bad": Ink("error", bold=True),
    "bad-soft": Ink("error"),
    "info": Ink("primary"),
    "accent": Ink("accent"),
    "key": Ink("accent", bold=True),
    "title": Ink(bold=True),
    "title-focus": Ink("accent", bold=True, reverse=True),
    "cursor": Ink(under="panel", bold=True),
    "match": Ink("warning", reverse=True),
    "badge-ok": Ink("success", bold=True, reverse=True),
    "badge-warn": Ink("warning", bold=True, reverse=True),
    "badge-bad": Ink("error", bold=True, reverse=True),
    "badge-info": Ink("primary", bold=True, reverse=True),
    "badge-idle": Ink(bold=True, reverse=True),
    **{f"rank{n}": Ink(("primary", "secondary", "accent", "success")[n % 4], bold=n >= 4) for n in range(8)},
}


def style_of(name: str, variables: Mapping[str, str], background: Color) -> Style:
    """The looks of a style name over a background, to be added to the widget's own; an unknown name adds nothing."""
    ink = INKS.get(name)
    if ink is None:
        return Style.null()
    bold, reverse = ink.bold or None, ink.reverse or None
    own = background.ansi is not None  # the terminal's own colours: they cannot be blended
    under = Color.parse(variables[ink.under]).rich_color if ink.under and not own else None
    if not ink.color:
        return Style(bgcolor=under, bold=bold, reverse=reverse)
    color = Color.parse(variables[ink.color])
    if ink.share == 1.0:
        return Style(color=color.rich_color, bgcolor=under, bold=bold, reverse=reverse)
    if own:
        return Style(dim=True)
    return Style(color=background.blend(color, ink.share).rich_color)
