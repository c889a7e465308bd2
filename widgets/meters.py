"""Bars and history strips: fixed scale, gaps stay gaps."""

from __future__ import annotations

from collections.abc import Sequence

from widgets.line import Line

_STEPS = "▁▂▃▄▅▆▇█"


def bar(fraction: float | None, width: int, style: str = "info") -> Line:
    """A bar of exactly ``width`` cells; unknown is a row of "?", not an empty bar."""
    if width <= 0:
        return ()
    if fraction is None:
        return (("?" * width, "dim"),)
    share = min(1.0, max(0.0, fraction))
    full = round(share * width)
    if share > 0 and full == 0:
        full = 1
    if share < 1 and full == width:
        full = width - 1
    return (("■" * full, style), ("·" * (width - full), "track"))


def strip(values: Sequence[float | None], width: int, top: float, style: str = "info") -> Line:
    """The newest ``width`` values, newest at the right, 0 to ``top``. None is a blank."""
    if width <= 0 or top <= 0:
        return ()
    newest = list(values)[-width:]
    text = "".join(" " if v is None else _STEPS[min(7, max(0, int(v / top * 8)))] for v in newest)
    return ((" " * (width - len(text)) + text, style),)


def by_slot(
    points: Sequence[tuple[float, float | None]], now: float, slots: int, slot_s: float
) -> list[float | None]:
    """Points into equal time slots that end now; a slot without a point is None. The last point wins."""
    out: list[float | None] = [None] * slots
    oldest = now - slots * slot_s
    for t, value in reversed(points):
        if t <= oldest:
            break
        index = slots - 1 - int((now - t) / slot_s)
        if value is not None and 0 <= index < slots and out[index] is None:
            out[index] = value
    return out
