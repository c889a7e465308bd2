"""Colours: contrast of every pair that is used, no colour with NO_COLOR, ASCII without double meanings."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.color import ColorType
from textual.color import Color

from sgmon.settings import Settings
from tests.ui import fakes
from tests.ui.screen import running
from tui_app.app import SgmonApp
from widgets.line import ASCII_GLYPHS
from widgets.states import STATE_STYLES
from widgets.styles import STYLES, style_of

#: backgrounds of usual terminals: black, ours before, VS Code, One Dark; white, GitHub, Solarized, GNOME
BACKGROUNDS = {
    "sgmon-dark": ("#000000", "#121212", "#1e1e1e", "#282c34"),
    "sgmon-light": ("#ffffff", "#f6f8fa", "#fdf6e3", "#eeeeee"),
}
#: lines and bars are no text: 3:1 is asked of graphics, nothing of decoration
GRAPHICS, DECORATION = {"track"}, {"rule"}


@pytest.mark.parametrize("theme", BACKGROUNDS)
def test_every_pair_of_colours_has_the_contrast_of_wcag_aa(theme: str) -> None:
    from tui_app.no_engine import NoEngine

    app = SgmonApp(NoEngine(), Settings(theme=theme))
    variables = app.get_css_variables()
    cursor = variables["sgmon-cursor"]
    for name in set(STYLES) - DECORATION:
        style = style_of(name, variables, Color(0, 0, 0, ansi=-1))
        if style.color is None or style.color.type == ColorType.DEFAULT:
            continue
        ours = Color.from_rich_color(style.color)
        for under in (*BACKGROUNDS[theme], cursor):
            ratio = _contrast(ours, Color.parse(under))
            assert ratio >= (3.0 if name in GRAPHICS else 4.5), f"{name} {ours.hex} on {under}: {ratio:.2f}"


def _contrast(one: Color, other: Color) -> float:
    """WCAG 2: from the relative luminance of both."""
    lights = []
    for color in (one, other):
        parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized]
        lights.append(0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_the_background_is_the_terminals_own(theme: str) -> None:
    async with running(fakes.stuck(), (120, 40), Settings(theme=theme)) as (app, _, _):
        for strip in app.screen._compositor.render_strips():
            for segment in strip:
                back = segment.style.bgcolor if segment.style else None
                assert back is None or back.type == ColorType.DEFAULT


async def test_no_color_sends_no_colour_and_the_state_is_the_only_reversed_thing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(fakes.stuck(), (120, 40)) as (app, _, _):
        reversed_words = []
        for strip in app.screen._compositor.render_strips():
            for segment in strip:
                for color in (segment.style.color, segment.style.bgcolor) if segment.style else ():
                    assert color is None or color.type == ColorType.DEFAULT
                if segment.style and segment.style.reverse:
                    reversed_words.append(segment.text.strip())
        assert reversed_words == ["■ STALLED"]


def test_ascii_has_no_letter_that_is_a_key_and_one_meaning_for_each_state() -> None:
    keys = {key for _, bindings in _sections() for one in bindings for key in one.key.split(",")}
    letters = {chr(code) for code in ASCII_GLYPHS.values() if chr(code).isalpha()} - {"x"}  # "x8" is a number
    assert not letters & keys
    states = {look.glyph for look in STATE_STYLES.values()}
    assert len({glyph.translate(ASCII_GLYPHS) for glyph in states}) == len(states)
    assert "✓".translate(ASCII_GLYPHS) == "+"


def _sections() -> list[tuple[str, list[object]]]:
    from tui_app.no_engine import NoEngine

    return SgmonApp(NoEngine()).help_sections()  # type: ignore[return-value]


async def test_a_theme_that_the_user_chooses_is_kept_and_the_one_of_the_start_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with running(fakes.stuck(), (120, 40)) as (app, _, pilot):
        await pilot.pause()
        assert not list(tmp_path.rglob("theme"))
        app.theme = "nord"
        for _ in range(500):  # written in a thread
            if list(tmp_path.rglob("theme")):
                break
            await pilot.pause(0.02)
        assert (tmp_path / "sgmon" / "theme").read_text() == "nord\n"
