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


class StyleRule(NamedTuple):
    """Names of theme variables. share: how much of the colour, the rest is what lies under it."""

    color: str = ""
    under: str = ""
    share: float = 1.0
    bold: bool = False
    reverse: bool = False


STYLES: Mapping[str, StyleRule] = {
    "dim": StyleRule("foreground", share=0.62),
    "rule": StyleRule("foreground", share=0.35),
    "track": StyleRule("foreground", share=0.35),
    "strong": StyleRule(bold=True),
    "ok": StyleRule("success"),
    "warn": StyleRule("warning"),
    "odd": StyleRule("warning", bold=True),
    "bad": StyleRule("error", bold=True),
    "bad-soft": StyleRule("error"),
    "info": StyleRule("primary"),
    "accent": StyleRule("accent"),
    "key": StyleRule("accent", bold=True),
    "title": StyleRule(bold=True),
    "title-focus": StyleRule("accent", bold=True, reverse=True),
    "cursor": StyleRule(under="panel", bold=True),
    "match": StyleRule("warning", reverse=True),
    "badge-ok": StyleRule("success", bold=True, reverse=True),
    "badge-warn": StyleRule("warning", bold=True, reverse=True),
    "badge-bad": StyleRule("error", bold=True, reverse=True),
    "badge-info": StyleRule("primary", bold=True, reverse=True),
    "badge-idle": StyleRule(bold=True, reverse=True),
    **{f"rank{n}": StyleRule(("primary", "secondary", "accent", "success")[n % 4], bold=n >= 4) for n in range(8)},
}


#: without colours reverse is left to what is wrong, so that it is the loudest
_QUIET_WITHOUT_COLOUR = frozenset({"badge-ok", "badge-info", "badge-idle", "title-focus"})


def style_of(name: str, variables: Mapping[str, str], background: Color, *, no_color: bool = False) -> Style:
    """The looks of a style name over a background, to be added to the widget's own; an unknown name adds nothing."""
    rule = STYLES.get(name)
    if rule is None:
        return Style.null()
    if no_color:
        return _without_colour(name, rule)
    bold, reverse = rule.bold or None, rule.reverse or None
    own = background.ansi is not None  # the terminal's own colours: they cannot be blended
    given = variables.get(f"sgmon-{name}")  # the theme's own colour for this
    if rule.under:
        color = given or (None if own else variables[rule.under])
        return Style(bgcolor=Color.parse(color).rich_color if color else None, bold=bold, reverse=reverse)
    if not rule.color:
        return Style(bold=bold, reverse=reverse)
    if rule.share == 1.0:
        return Style(color=Color.parse(variables[rule.color]).rich_color, bold=bold, reverse=reverse)
    if given:
        return Style(color=Color.parse(given).rich_color)
    if own:
        return Style(dim=True)
    return Style(color=background.blend(Color.parse(variables[rule.color]), rule.share).rich_color)


def _without_colour(name: str, rule: StyleRule) -> Style:
    is_loud = rule.reverse and name not in _QUIET_WITHOUT_COLOUR
    return Style(bold=rule.bold or None, dim=rule.share < 1.0 or None, reverse=is_loud or None)
