"""Which rows and which of their summaries the GPU panel paints in the room there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from widgets.gpu_rows import (
    GpuRow,
    fold,
    header_line,
    held_rows,
    history_rows,
    plan_rows,
    power_rows,
    row_line,
    why_rows,
    widths_for,
)
from widgets.gpu_view import GpuView
from widgets.line import Line

GpuKey = tuple[str, int]  # node, index


def paint(view: GpuView, width: int, height: int) -> list[Line]:
    """Rows for the room there is."""
    return layout(view, width, height)[0]


def layout(view: GpuView, width: int, height: int) -> tuple[list[Line], dict[int, tuple[GpuKey, ...]]]:
    """The lines, and which of them begins which GPU."""
    silent = silence(view, height)
    if not view.rows:
        none: list[Line] = [((" no GPU on this node" if view.driver else " no reading yet", "dim"),)]
        return silent or none, {}
    rows = list(view.rows)
    room = height - len(silent)
    if len(rows) > room:
        rows = fold(rows)
    widths = widths_for(rows, width)
    parts = _parts(rows, width, room)
    lines = list(silent)
    if parts.header and (widths.history or width >= 40):
        lines.append(header_line(widths))
    places: dict[int, tuple[GpuKey, ...]] = {}
    for row, more in zip(rows, parts.below, strict=True):
        if row.keys not in places.values():
            places[len(lines)] = row.keys
        lines += [row_line(row, widths), *more]
    return lines, places


class _Parts(NamedTuple):
    """Which lines go below which row, and whether there is a header."""

    below: list[list[Line]]
    header: bool


def _parts(rows: Sequence[GpuRow], width: int, room: int) -> _Parts:
    """Most telling first: why a GPU differs, column names, then holders, power, plan and history of all."""
    below: list[list[Line]] = [[] for _ in rows]
    spare = room - len(rows)
    for row, more in sorted(zip(rows, below, strict=True), key=lambda item: not item[0].stands_out):
        for line in why_rows(row):
            if spare > 0:
                more.append(line)
                spare -= 1
    header = spare > 0
    spare -= 1
    kinds: tuple[Callable[[GpuRow, int], list[Line]], ...] = (
        held_rows,
        power_rows,
        plan_rows,
        history_rows,
    )
    whole = [row.summary.held or not row.notes for row in rows]  # slices and folded rows have no summary of their own
    for kind in kinds:
        lines = [
            kind(row, width) if is_whole and not row.error and len(row.indexes) == 1 else []
            for row, is_whole in zip(rows, whole, strict=True)
        ]
        needed = sum(len(extra) for extra in lines)
        if needed > spare:
            continue
        spare -= needed
        for more, extra in zip(below, lines, strict=True):
            more += extra
    return _Parts(below, header)


def silence(view: GpuView, height: int) -> list[Line]:
    """NVML says nothing: why, and what helps."""
    if not view.unavailable:
        return []
    words = "" if " silent" in view.unavailable else "no GPU readings: "
    rows: list[Line] = [((f" {words}", "warn"), (view.unavailable, "bad" if not words else ""))]
    if view.remedy and height >= (3 if view.rows else 2):
        rows.append(((" fix: ", "key"), (view.remedy, "")))
    if not view.rows:
        rows.append(((" everything else goes on without them", "dim"),))
    return rows
