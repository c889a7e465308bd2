"""The shortest way to write a character, or equal ones. Pure."""

from __future__ import annotations

from tui_app.output.abilities import Abilities

#: before the first line of a frame: DEC's line drawing characters are G1, which SO (shift out) invokes and SI ends
DESIGNATE = "\x1b)0"
_SHIFT_OUT, SHIFT_IN = "\x0e", "\x0f"
_LINES = {"─": "q", "·": "~", "◆": "`"}


def written(char: str, count: int, can: Abilities, is_drawing: bool) -> tuple[str, bool]:
    """``count`` times a character, and whether line drawing is invoked after it. is_drawing: whether it is before."""
    # tmux, which alone repeats ASCII only, takes it for ASCII alone; in GNU screen UTF-8 would be broken
    stays = is_drawing and (char == " " or (can.repeats_ascii and not char.isascii()))
    text = ("" if stays or not is_drawing else SHIFT_IN) + _repeated(char, count, can)
    line = _LINES.get(char) if can.draws_lines and not can.repeats else None
    if line is not None:
        drawn = ("" if is_drawing else _SHIFT_OUT) + _repeated(line, count, can)
        if len(drawn) + (not is_drawing) <= len(text.encode()):  # one byte for the way back
            return drawn, True
    return text, stays


def _repeated(char: str, count: int, can: Abilities) -> str:
    if count > 1 and len(char) == 1 and (can.repeats or (can.repeats_ascii and char.isascii())):
        again = f"\x1b[{count - 1}b"
        if len(again) < (count - 1) * len(char.encode()):
            return char + again
    return char * count
