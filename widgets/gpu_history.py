"""The history of a GPU on a fixed scale, from the first reading to now, with the stages of the start below it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sgmon.analyse.gpu.summary import Stage
from sgmon.units import age
from widgets.line import Line, cell
from widgets.meters import by_slot, strip

SLOTS = 120
_SLOT_S = (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1800)
#: stage -> its letter, its word
STAGES = {"weights": ("w", "weights"), "kv": ("k", "KV"), "graphs": ("g", "graphs")}


class History(NamedTuple):
    """Equal slots that end at ``end_t``; None is a slot without a reading."""

    end_t: float
    slot_s: float
    used: tuple[float | None, ...] = ()
    util: tuple[float | None, ...] = ()
    power: tuple[float | None, ...] = ()


def history(
    used: Sequence[tuple[float, float | None]],
    util: Sequence[tuple[float, float | None]],
    power: Sequence[tuple[float, float | None]],
    now: float,
) -> History:
    """All that is kept, in at most SLOTS slots."""
    span = now - used[0][0] if used else 0.0
    slot_s = float(next((step for step in _SLOT_S if step * (SLOTS - 1) >= span), 3600))
    end = now // slot_s * slot_s + slot_s
    count = min(SLOTS, int(span / slot_s) + 2)
    return History(end, slot_s, *(tuple(by_slot(points, end, count, slot_s)) for points in (used, util, power)))


def narrowed(shown: History, width: int) -> History:
    """The same over ``width`` cells: several slots become one, whose value is the newest in it."""
    step = -(-len(shown.used) // max(1, width))
    if step <= 1:
        return shown

    def coarser(values: Sequence[float | None]) -> tuple[float | None, ...]:
        begins = range(len(values), 0, -step)
        groups = [values[max(0, end - step) : end] for end in begins]
        return tuple(next((v for v in reversed(group) if v is not None), None) for group in reversed(groups))

    return History(shown.end_t, shown.slot_s * step, coarser(shown.used), coarser(shown.util), coarser(shown.power))


def memory_rows(shown: History, stages: Sequence[Stage], total: float, width: int) -> list[Line]:
    """The memory strip and the row of stages under it."""
    shown = narrowed(shown, width)
    return [strip(shown.used, width, total, "track"), stage_row(shown, stages, width)]


def strip_rows(shown: History, stages: Sequence[Stage], gpu: tuple[float, float], width: int) -> list[Line]:
    """Memory, utilisation and power over the same time, the stages, the clock. gpu: (bytes, watts) of the scales."""
    total, limit = gpu
    room = max(10, min(SLOTS, width - 24))
    shown = narrowed(shown, room)
    used = len(shown.used)
    span = f"{age(used * shown.slot_s)} ago"
    rows: list[Line] = []
    for name, values, top, style, scale in (
        ("memory", shown.used, total, "info", f"0-{total / 2**30:.0f} GiB"),
        ("utilisation", shown.util, 100.0, "ok", "0-100 %"),
        ("power", shown.power, limit, "accent", f"0-{limit:.0f} W"),
    ):
        rows.append(((f" {name:<11} ", "info"), *strip(values, used, top, style), (f" {scale}", "dim")))
    row = stage_row(shown, stages, used)
    rows.append(((f" {'stage':<11} ", "info"), *row))
    lone = set(re.split("[│─ ]+", row[0][0]))
    if letters := ", ".join(f"{letter} {word}" for letter, word in STAGES.values() if letter in lone):
        rows.append(((" " * 13, ""), (letters, "dim")))
    ends = cell(span, max(len(span), used - 3)) if used > len(span) + 3 else ("", "")
    rows.append(((" " * 13, ""), (ends[0], "dim"), ("now" if ends[0] else "", "dim")))
    return rows


def stage_row(shown: History, stages: Sequence[Stage], width: int) -> Line:
    """ "│weights────k│graphs────": where each stage was. One without room for its word before the next is its letter;
    of two that share a cell the later one stands a cell to the right."""
    count = len(shown.used)
    cells = [" "] * count
    begin = shown.end_t - count * shown.slot_s
    firsts = [int((stage.begin_t - begin) // shown.slot_s) for stage in stages]
    free = 0
    for stage, first, following in zip(stages, firsts, [*firsts[1:], count], strict=False):
        letter, word = STAGES.get(stage.name, (stage.name[:1], stage.name))
        end_t = shown.end_t - shown.slot_s if stage.end_t is None else stage.end_t
        last = int((end_t - begin) // shown.slot_s)
        if last < 0 or first >= count or free >= count:
            continue
        first = max(free, first)
        length = max(first, min(count - 1, last)) - first + 1
        text = f"│{word}" if min(following, count) - first > len(word) else letter
        length = max(length, len(text))
        cells[first : first + length] = text + "─" * (length - len(text))
        free = first + len(text)
    return ((" " * max(0, width - count) + "".join(cells[:count][-width:]), "dim"),)
