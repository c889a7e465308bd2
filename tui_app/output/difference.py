"""What has to be sent so that a terminal that shows one screen shows another. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tui_app.output.abilities import Abilities
from tui_app.output.cells import Row
from tui_app.output.clearing import BLANK, blank_of
from tui_app.output.looks import send_by_look
from tui_app.output.sender import Sender, byte_count

_WORTH_ERASING = 24  # bytes: erasing may flicker, and ends what the terminal has selected
_MUCH_LOOK = 60  # bytes of changes of look from which another order is tried


def difference(
    old: Sequence[Row], new: Sequence[Row], can: Abilities | None = None, *, in_order: bool = False
) -> str:
    """The shortest sequences that we know from ``old`` to ``new`` (of the same size), beginning and ending in plain:
    cells that differ, or everything below the first row that differs after erasing it; row after row, or all cells of
    one look before those of the next. in_order: row after row in any case. can: None, nothing special."""
    changed = [y for y, (before, after) in enumerate(zip(old, new, strict=True)) if before != after]
    if not changed:
        return ""
    can = can or Abilities()
    cells = Sender(can)
    for y in changed:
        cells.row(y, old[y], new[y])
    best = cells.end()
    if not in_order and cells.bytes_of_looks >= _MUCH_LOOK:
        looks = Sender(can)
        send_by_look(looks, {y: (old[y], new[y]) for y in changed})
        best = min(best, looks.end(), key=byte_count)
    most = byte_count(best) - _WORTH_ERASING
    return (_fits(new[changed[0] :], most) and _erased(changed[0], new, can, most, in_order)) or best


def _erased(top: int, new: Sequence[Row], can: Abilities, limit: int, in_order: bool) -> str:
    """Everything from row ``top`` on after erasing it; "" if that takes ``limit`` bytes or more."""
    blank = blank_of(new[top:], can)
    if blank[1].back and not can.erases_in_colour:
        return ""  # rows are filled one by one
    sender = Sender(can)
    sender.erase_from(top, blank[1].back)
    rows = {y: ([blank] * len(new[y]), new[y]) for y in range(top, len(new))}
    if in_order:
        _send_in_order(sender, rows, limit)
    else:
        send_by_look(sender, rows)
    text = sender.end()
    return text if byte_count(text) < limit else ""


def _send_in_order(sender: Sender, rows: Mapping[int, tuple[Row, Row]], limit: int) -> None:
    """Send what differs in rows, given as (before, after), until that takes ``limit`` bytes: most frames change a few
    cells, and all rows below them would be made for nothing."""
    counted, size = 0, 0
    for y, (before, after) in rows.items():
        size += byte_count("".join(sender.parts[counted:]))
        counted = len(sender.parts)
        if size >= limit:
            return
        sender.row(y, before, after)


def _fits(rows: Sequence[Row], most: int) -> bool:
    """Whether rows on an erased screen may take fewer bytes than ``most``: of equal neighbours one is counted, blanks
    are not. A quick look, which may be wrong only in saying yes."""
    for row in rows:
        most -= sum(
            cell[0] not in (" ", "") and cell != left for cell, left in zip(row, (BLANK, *row[:-1]), strict=True)
        )
        if most <= 0:
            return False
    return True
