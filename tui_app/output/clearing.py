"""Which rows are cleared before their text is sent. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tui_app.output.abilities import Abilities
from tui_app.output.cells import Cell, Row
from tui_app.output.pens import PLAIN, Pen

BLANK: Cell = (" ", PLAIN)
_LEAST = 12  # changed cells of a row from which it is looked at
_ERASED, _FILLED = 5, 9  # bytes: a movement and an erasure, or a blank and how often
_OTHER = 10  # bytes of a background that few rows have
_MOVE, _ATTACHED = 4, 2  # bytes that a stretch costs beyond its cells, and blanks beside text


def blank_of(rows: Sequence[Row], can: Abilities) -> Cell:
    """The blank in the background of most blanks, if the terminal can fill rows with it in a few bytes."""
    found = Counter(pen.back for row in rows for char, pen in row if char == " ").most_common(1)
    back = found[0][0] if found else ""
    return (" ", Pen(back=back)) if back and (can.erases_in_colour or can.repeats_blanks) else BLANK


def cleared(before: Row, after: Row, can: Abilities, common: Cell) -> Cell | None:
    """The blank with which a row is best filled before its text is sent; None: what differs is shorter.
    common: the blank of most rows."""
    changed = [one != other for one, other in zip(before, after, strict=True)]
    if sum(changed) < _LEAST:
        return None
    blank = blank_of([after], can)
    saved = lost = blanks = kept = 0
    for differs, (char, pen) in zip(changed, after, strict=True):
        is_blank = char == " " and pen.back == blank[1].back and not pen.shows_on_blanks
        blanks = blanks + 1 if is_blank and differs else 0
        kept = kept + 1 if not is_blank and not differs else 0
        saved += (0 < blanks <= _FILLED) + (_ATTACHED if blanks == 1 else 0)
        lost += (kept > 0) + (_MOVE if kept == 1 else 0)
    costs = _FILLED if blank[1].back and not can.erases_in_colour else _ERASED
    return blank if saved - lost > costs + (0 if blank == common else _OTHER) else None
