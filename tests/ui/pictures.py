"""The screen as an SVG that can be kept and compared: no web font, no random id, one cell run a line, named looks."""

from __future__ import annotations

import difflib
import html
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME

from tui_app.app import SgmonApp

ROW_HEIGHT = 24.4  # of Rich's SVG: 20 units a letter, 1.22 a line
FIRST_BASELINE = 20
NO_BREAK_SPACE = "\u00a0"
_FORM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {terminal_width:.0f} {terminal_height:.0f}">
<style>
text {{ font: {char_height}px monospace; white-space: pre }}
{styles}
</style>
<rect width="100%" height="100%" fill="BACKGROUND"/>
{backgrounds}
{matrix}
</svg>
"""
_STYLE = re.compile(r"\.t-(r\d+) \{ (.*) \}")
_TEXT = re.compile(r'<text class="(.*)" x="(.*)" y="(.*)" textLength=".*">(.*)</text>')
_BACK = re.compile(r'<rect fill="(.*)" x="(.*)" y="(.*)" width="(.*)" height=.*/>')


class Difference(NamedTuple):
    """One picture that is not as it was. kept is empty where none was kept."""

    name: str
    kept: str
    now: str


class Row(NamedTuple):
    """One row of a picture. looks: the colours and weights of its parts, with their columns' places."""

    text: str
    looks: tuple[tuple[str, ...], ...]


def svg_of(app: SgmonApp, is_light: bool) -> str:
    """The screen on a light or a dark terminal, the same text for the same screen."""
    theme = DEFAULT_TERMINAL_THEME if is_light else SVG_EXPORT_THEME
    width, height = app.size
    console = Console(
        width=width, height=height, file=io.StringIO(), force_terminal=True, color_system="truecolor", record=True
    )
    console.print(app.screen._compositor.render_update(full=True, simplify=True))
    form = _FORM.replace("BACKGROUND", theme.background_color.hex)
    svg = console.export_svg(title="", theme=theme, code_format=form, unique_id="t")
    svg = re.sub(r' clip-path="[^"]*"| shape-rendering="[^"]*"', "", svg)
    svg = re.sub(r"<text[^>]*>\s</text>", "", svg)  # the line feeds at the ends of the rows
    return _name_looks(svg.replace("><", ">\n<").replace("&#160;", NO_BREAK_SPACE))


def rows_of(svg: str) -> list[Row]:
    """The rows from the first to the last that has text; looks count also where there is none."""
    texts: dict[int, list[tuple[float, str]]] = {}
    looks: dict[int, list[tuple[str, ...]]] = {}
    for look, x, y, text in _TEXT.findall(svg):
        row = round((float(y) - FIRST_BASELINE) / ROW_HEIGHT)
        texts.setdefault(row, []).append((float(x), html.unescape(text).replace(NO_BREAK_SPACE, " ")))
        looks.setdefault(row, []).append((look, x))
    for fill, x, y, width in _BACK.findall(svg):
        looks.setdefault(int(float(y) / ROW_HEIGHT), []).append((fill, x, width))
    last = max([*texts, *looks], default=-1)
    return [Row(_joined(texts.get(row, ())), tuple(looks.get(row, ()))) for row in range(last + 1)]


def describe(differences: Sequence[Difference]) -> Iterator[str]:
    """The rows that differ, for a person; pictures with the same difference together."""
    together: dict[tuple[str, ...], list[str]] = {}
    for name, kept, now in differences:
        together.setdefault(tuple(_rows_that_differ(rows_of(kept), rows_of(now))), []).append(name)
    for rows, names in together.items():
        yield f"{', '.join(names)}:"
        yield from (f"  {row}" for row in rows)


def _rows_that_differ(kept: Sequence[Row], now: Sequence[Row]) -> Iterator[str]:
    if not kept:
        yield "no picture is kept"
        return
    words = difflib.unified_diff([row.text for row in kept], [row.text for row in now], n=0, lineterm="")
    yield from itertools.islice(words, 2, None)  # without the names of two files
    for number, (old, new) in enumerate(zip(kept, now, strict=False), 1):
        if old.text == new.text and old.looks != new.looks:
            yield f"row {number}, other colours or weights: {new.text.strip()}"


def write_side_by_side(differences: Sequence[Difference], path: Path) -> None:
    """A page with what is kept on the left and what is now on the right."""
    rows = [
        f"<tr><th colspan=2>{html.escape(each.name)}</th></tr><tr><td>{each.kept}</td><td>{each.now}</td></tr>"
        for each in differences
    ]
    style = "<style>table { width: 100% } td { width: 50%; vertical-align: top } svg { width: 100% }</style>"
    head = "<tr><th>kept</th><th>now</th></tr>"
    path.write_text(
        f"<!doctype html><meta charset=utf-8>{style}<table>{head}{''.join(rows)}</table>", encoding="utf-8"
    )


def _joined(parts: Sequence[tuple[float, str]]) -> str:
    line = ""
    for x, text in sorted(parts):
        line = line.ljust(round(x / 12.2)) + text
    return line.rstrip()


def _name_looks(svg: str) -> str:
    """Classes named after their colour: a number would change with each look that comes before it."""
    names = {number: "-".join(["c", *re.findall(r": #?([\w-]+)", rules)]) for number, rules in _STYLE.findall(svg)}
    return re.sub(r"\bt-(r\d+)\b", lambda match: names[match[1]], svg)
