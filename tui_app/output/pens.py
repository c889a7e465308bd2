"""How a cell looks, and the shortest sequence from one look to another."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from rich.color import Color, ColorSystem, ColorType
from rich.style import Style

_ON = (("bold", "1"), ("dim", "2"), ("italic", "3"), ("underline", "4"), ("blink", "5"), ("reverse", "7"))
_STRIKE = ("strike", "9")
#: attribute -> what ends it; bold and dim have one end
_OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "7": "27", "9": "29"}
_VISIBLE_ON_BLANKS = frozenset("479")
_STEPS = (0, 95, 135, 175, 215, 255)
#: colours of the xterm palette beyond the first 16, which themes of a terminal do not change
_PALETTE = {
    **{
        (r, g, b): 16 + 36 * i + 6 * j + k
        for i, r in enumerate(_STEPS)
        for j, g in enumerate(_STEPS)
        for k, b in enumerate(_STEPS)
    },
    **{(8 + 10 * n,) * 3: 232 + n for n in range(24)},
}


class Pen(NamedTuple):
    """SGR parameters: of the foreground, of the background ("" is the terminal's own), of the attributes."""

    fore: str = ""
    back: str = ""
    attributes: frozenset[str] = frozenset()

    @property
    def shows_on_blanks(self) -> bool:
        """Whether a space in this look is more than its background."""
        return not self.attributes.isdisjoint(_VISIBLE_ON_BLANKS)


PLAIN = Pen()
_OF_PALETTE = re.compile(r"38;5;(\d+)")
_OF_ALL = re.compile(r"38;2;(\d+);(\d+);(\d+)")
_FIRST_GREY = 232
_BLACK, _WHITE = 16, 231


@lru_cache(maxsize=4096)
def frugal(pen: Pen, page: Pen = PLAIN, is_bare: bool = False) -> Pen:
    """A look with a shorter sequence: a grey is the terminal's faint (is_bare: its text), another colour the nearest
    of its first 16, and not bold too unless it is reversed. page: a theme's text on its background, both of which
    become the terminal's own; on another background of such a theme a look stays as it is."""
    if pen.back != page.back and page.back:
        return pen
    pen = Pen("" if pen.fore == page.fore else pen.fore, "" if page.back else pen.back, pen.attributes)
    number = _palette_number(pen.fore)
    if number is None:
        return pen
    if number >= _FIRST_GREY:
        return Pen("", pen.back, pen.attributes or frozenset(() if is_bare else "2"))
    if number in (_BLACK, _WHITE):
        return Pen("", pen.back, pen.attributes)
    attributes = pen.attributes if "7" in pen.attributes else pen.attributes - {"1"}
    return Pen(_colour(Color.from_ansi(number), ColorSystem.STANDARD, True), pen.back, attributes)


def _palette_number(fore: str) -> int | None:
    """The nearest colour of the xterm palette beyond the first 16; None for one of those, or for none."""
    found = _OF_ALL.fullmatch(fore)
    if found is not None:
        red, green, blue = (int(part) for part in found.groups())
        return Color.from_rgb(red, green, blue).downgrade(ColorSystem.EIGHT_BIT).number
    found = _OF_PALETTE.fullmatch(fore)
    return int(found[1]) if found is not None else None


@lru_cache(maxsize=4096)
def pen_of(style: Style | None, system: ColorSystem | None) -> Pen:
    """The look of a Rich style on a terminal with these colours."""
    if style is None:
        return PLAIN
    attributes = frozenset(code for name, code in (*_ON, _STRIKE) if getattr(style, name))
    return Pen(_colour(style.color, system, True), _colour(style.bgcolor, system, False), attributes)


def _colour(color: Color | None, system: ColorSystem | None, foreground: bool) -> str:
    if color is None or system is None or color.type == ColorType.DEFAULT:
        return ""
    if color.type == ColorType.TRUECOLOR and color.triplet is not None and system != ColorSystem.STANDARD:
        number = _PALETTE.get(tuple(color.triplet))
        if number is not None:
            return f"{'38' if foreground else '48'};5;{number}"
    return ";".join(color.downgrade(system).get_ansi_codes(foreground))


@lru_cache(maxsize=4096)
def change(old: Pen, new: Pen) -> str:
    """The shortest SGR sequence from one look to another; "" when they are the same."""
    if old == new:
        return ""
    fresh = [*sorted(new.attributes), *filter(None, (new.fore, new.back))]
    whole = f"\x1b[;{';'.join(fresh)}m" if fresh else "\x1b[m"  # a parameter left out is 0
    gone = old.attributes - new.attributes
    ends = {_OFF[code] for code in gone}
    begun = {code for code in new.attributes if code not in old.attributes or _OFF[code] in ends}
    codes = [*sorted(ends), *sorted(begun)]
    if new.fore != old.fore:
        codes.append(new.fore or "39")
    if new.back != old.back:
        codes.append(new.back or "49")
    part = f"\x1b[{';'.join(codes)}m"
    return part if len(part) <= len(whole) else whole
