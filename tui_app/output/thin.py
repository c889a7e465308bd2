"""What a thin link is spared: long sequences of looks, and rules where each cell of one is three bytes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.style import Style

from tui_app.output.cells import Row
from tui_app.output.pens import PLAIN, Pen, frugal, pen_of

if TYPE_CHECKING:
    from rich.color import ColorSystem
    from textual.theme import Theme

RULE = "─"


class Savings(NamedTuple):
    """How a page is made shorter. page: the theme's text on the theme's background, for which the terminal's own are
    shown; None: the theme's looks stay. is_bare: no rules, and greys are text; for a terminal without REP."""

    page: Pen | None = PLAIN
    is_bare: bool = False


def without_rules(rows: Sequence[Row]) -> list[Row]:
    """The same cells, with blanks for rules."""
    return [[(" ", Pen(back=pen.back)) if char == RULE else (char, pen) for char, pen in row] for row in rows]


def frugal_rows(rows: Sequence[Row], savings: Savings) -> list[Row]:
    """The same characters in looks with shorter sequences."""
    page = savings.page
    if page is None:
        return list(rows)
    return [[(char, frugal(pen, page, savings.is_bare)) for char, pen in row] for row in rows]


def page_of(theme: Theme, *, terminal_is_light: bool, system: ColorSystem | None) -> Pen | None:
    """``Savings.page`` of a theme. None where the terminal's background is light and the theme is dark, or the other
    way round: the theme's colours could not be read on it."""
    if theme.ansi:
        return PLAIN
    if theme.dark == terminal_is_light:
        return None
    colours = theme.to_color_system().generate()
    return pen_of(Style(color=colours["foreground"], bgcolor=colours["background"]), system)
