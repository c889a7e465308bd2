"""The changes of many rows, all cells of one look before those of the next. Pure.

A change of look takes 3 to 20 bytes, a movement 3 to 8: of a page with a hundred short words in five looks most bytes
were changes of look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tui_app.output.abilities import Abilities
from tui_app.output.cells import Cell, Row
from tui_app.output.clearing import blank_of, cleared
from tui_app.output.moves import forward
from tui_app.output.pens import PLAIN, Pen, change
from tui_app.output.sender import ERASE, GAP, SKIP, Sender, Stretch, byte_count, is_alike


def send_by_look(sender: Sender, rows: Mapping[int, tuple[Row, Row]]) -> None:
    """Send what differs in rows, given as (before, after), in as few changes of look as there are looks. Rows
    of which much is blank are cleared before their text."""
    common = blank_of([after for _, after in rows.values()], sender.can)
    clear = _clear(rows, sender.can, common)
    by_pen: dict[Pen, list[Stretch]] = {}
    owners: dict[int, list[Pen | None]] = {}  # of each cell: the look in which it is sent
    for y, (before, after) in rows.items():
        if y in clear:
            before = [clear[y]] * len(after)
        owners[y] = [None] * len(after)
        for one in stretches(y, before, after, sender.can):
            by_pen.setdefault(one.pen, []).append(one)
            owners[y][one.begin : one.end] = [one.pen] * (one.end - one.begin)
    for y, blank in clear.items():
        if blank == common:
            sender.clear(y, blank, len(rows[y][1]))
    left = {y: blank for y, blank in clear.items() if blank != common}
    later = set(by_pen)
    for pen in _order(by_pen):
        later.discard(pen)
        for y in [y for y, blank in left.items() if blank[1].back == pen.back]:
            sender.clear(y, left[y] if pen.shows_on_blanks else (" ", pen), len(rows[y][1]))
            del left[y]
        for one in _joined(by_pen[pen], rows, owners, later, sender.can):
            sender.stretch(one, rows[one.y][1])


def _clear(rows: Mapping[int, tuple[Row, Row]], can: Abilities, common: Cell) -> dict[int, Cell]:
    """Rows to clear, and with which blank: of another background only those that have no other."""
    found = {y: cleared(before, after, can, common) for y, (before, after) in rows.items()}
    return {
        y: blank
        for y, blank in found.items()
        if blank is not None and (blank == common or all(pen.back == blank[1].back for _, pen in rows[y][1]))
    }


def stretches(y: int, before: Row, after: Row, can: Abilities) -> list[Stretch]:
    """Cells of a row that differ, in stretches of one look. Blanks go with a neighbour where they look the same."""
    changed = _changed(before, after)
    found: list[Stretch] = []
    x = 0
    while x < len(after):
        if not changed[x]:
            x += 1
            continue
        pen = after[x][1]
        end = x + 1
        while end < len(after) and changed[end] and after[end][1] == pen:
            end += 1
        found += _pieces(y, x, end, after, can)
        x = end
    return _with_neighbours(found, after)


def _changed(before: Row, after: Row) -> list[bool]:
    """Which cells differ; both halves of a wide character if one does."""
    changed = [one != other for one, other in zip(before, after, strict=True)]
    for x in range(1, len(after)):
        if after[x][0] == "" and changed[x] != changed[x - 1]:
            changed[x] = changed[x - 1] = True
    return changed


def _pieces(y: int, begin: int, end: int, row: Row, can: Abilities) -> list[Stretch]:
    """Cells of one look in parts: what is written, and blanks that are erased."""
    pen = row[begin][1]
    if pen.shows_on_blanks or (pen.back and not can.erases_in_colour):
        return [Stretch(y, begin, end, pen)]
    plain = Pen(back=pen.back) if pen.back else PLAIN
    parts: list[Stretch] = []
    x = start = begin
    while x < end:
        stop = x
        while stop < end and row[stop][0] == " ":
            stop += 1
        if stop - x >= (ERASE if stop == len(row) else SKIP):
            if x > start:
                parts.append(Stretch(y, start, x, pen))
            parts.append(Stretch(y, x, stop, plain, is_erased=True))
            start = stop
        x = max(stop, x + 1)
    if end > start:
        parts.append(Stretch(y, start, end, pen))
    return parts


def _with_neighbours(parts: list[Stretch], row: Row) -> list[Stretch]:
    """Blanks joined with what stands beside them, where they look the same in it."""
    joined: list[Stretch] = []
    for one in parts:
        last = joined[-1] if joined else None
        if last is not None and last.end == one.begin and not last.is_erased and not one.is_erased:
            if _is_blank(one, row) and is_alike(one.pen, last.pen):
                joined[-1] = last._replace(end=one.end)
                continue
            if _is_blank(last, row) and is_alike(one.pen, last.pen):
                joined[-1] = one._replace(begin=last.begin)
                continue
        joined.append(one)
    return joined


def _is_blank(one: Stretch, row: Row) -> bool:
    return all(char == " " for char, _ in row[one.begin : one.end])


def _order(pens: Iterable[Pen]) -> list[Pen]:
    """Pens, each followed by the one with the shortest way to it; the plain one first."""
    left, order, pen = list(pens), [], PLAIN
    while left:
        pen = min(left, key=lambda one: len(change(pen, one)))
        left.remove(pen)
        order.append(pen)
    return order


def _joined(
    parts: list[Stretch],
    rows: Mapping[int, tuple[Row, Row]],
    owners: Mapping[int, list[Pen | None]],
    later: set[Pen],
    can: Abilities,
) -> list[Stretch]:
    """Stretches of one look; those that lie near are joined where what is between may be written with them, as it is
    or, where its turn comes later, as blanks."""
    joined: list[Stretch] = []
    for one in parts:
        last = joined[-1] if joined else None
        if last is not None and last.y == one.y and not last.is_erased and not one.is_erased:
            owned = owners[one.y][last.end : one.begin]
            if _is_cheap(last, one, rows[one.y][1], can) and all(
                last.holds(cell) or owner in later
                for cell, owner in zip(rows[one.y][1][last.end : one.begin], owned, strict=True)
            ):
                joined[-1] = last._replace(end=one.end)
                continue
        joined.append(one)
    return joined


def _is_cheap(last: Stretch, one: Stretch, row: Row, can: Abilities) -> bool:
    """Whether writing what is between two stretches is as short as moving over it."""
    between = row[last.end : one.begin]
    if len(between) > GAP:  # one more blank in a row of them is free
        beside = (row[last.end - 1][0], row[one.begin][0])
        return (
            can.repeats_blanks and " " in beside and all(cell[0] == " " or not last.holds(cell) for cell in between)
        )
    way = len(forward(one.begin - last.end))
    return byte_count("".join(cell[0] if last.holds(cell) else " " for cell in between)) <= min(GAP, way)
