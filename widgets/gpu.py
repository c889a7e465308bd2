"""Panel 2: memory, load and power of each GPU, and which rank sits on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from sgmon.model import Gpu, Snapshot
from sgmon.text import clean
from sgmon.units import gib, percent, rank_list
from widgets.line import Line, cell, cell_len
from widgets.meters import bar, by_slot, strip
from widgets.panel import Panel

SLOTS = 40
SLOT_S = 3.0


class GpuRow(NamedTuple):
    """One GPU, or several that look the same."""

    indexes: tuple[int, ...]
    ranks: tuple[str, ...]
    inferred: bool
    used: int | None
    total: int | None
    util: int | None
    power: float | None
    limit: float | None
    temperature: int | None
    notes: str
    error: str
    odd: bool
    used_history: tuple[float | None, ...]
    util_history: tuple[float | None, ...]

    @property
    def share(self) -> float | None:
        if self.used is None or not self.total:
            return None
        return self.used / self.total


class GpuView(NamedTuple):
    """What the GPU panel shows."""

    rows: tuple[GpuRow, ...]
    name: str
    driver: str
    simulated: bool
    unavailable: str
    remedy: str


class GpuPanel(Panel[GpuView]):
    """One row per GPU; equal ones fold when there is no room."""

    NUMBER = "2"
    TITLE = "GPUs"
    PROBE = "gpu"
    READS = ("gpu", "series", "verdict")
    HINTS = (("z", "zoom"),)

    def select(self, snapshot: Snapshot) -> GpuView:
        return select(snapshot)

    def heading(self, view: GpuView) -> Line:
        return ((view.name, "dim"),) if view.name else ()

    def corner(self, view: GpuView) -> Line:
        if view.simulated:
            return ((" SIMULATED ", "badge-warn"),)
        return ()

    def paint(self, view: GpuView, width: int, height: int) -> Sequence[Line]:
        return paint(view, width, height)

    def probe_label(self) -> str:
        return "NVML"

    def stale_after_s(self) -> float:
        return 10.0


def select(snapshot: Snapshot) -> GpuView:
    """Rows with history from a snapshot."""
    reading = snapshot.gpu
    series = {item.name: item.points for item in snapshot.series if item.name.startswith("gpu")}
    now = math.floor(snapshot.t / SLOT_S) * SLOT_S + SLOT_S
    odd = set(snapshot.verdict.odd_ranks)

    def history(index: int, what: str) -> tuple[float | None, ...]:
        return tuple(by_slot(series.get(f"gpu{index}.{what}", ()), now, SLOTS, SLOT_S))

    rows = tuple(
        _row(gpu, history(gpu.index, "used"), history(gpu.index, "util"), bool(odd.intersection(gpu.ranks)))
        for gpu in reading.gpus
    )
    names = {gpu.name for gpu in reading.gpus if gpu.name}
    name = ""
    if len(names) == 1:
        name = f"{len(rows)} × {clean(names.pop(), 30)}" if len(rows) > 1 else clean(names.pop(), 30)
    return GpuView(
        rows=rows,
        name=name,
        driver=clean(reading.driver, 20),
        simulated=reading.simulated,
        unavailable=clean(reading.unavailable, 200),
        remedy=clean(reading.remedy, 200),
    )


def _row(gpu: Gpu, used: tuple[float | None, ...], util: tuple[float | None, ...], odd: bool) -> GpuRow:
    notes = [f"throttled: {', '.join(gpu.throttle)}"] if gpu.throttle else []
    if gpu.ecc_errors:
        notes.append(f"{gpu.ecc_errors} ECC errors")
    if gpu.mig:
        notes.append("MIG")
    return GpuRow(
        indexes=(gpu.index,),
        ranks=gpu.ranks,
        inferred=gpu.ranks_inferred,
        used=gpu.used_bytes,
        total=gpu.total_bytes,
        util=gpu.util_percent,
        power=gpu.power_w,
        limit=gpu.power_limit_w,
        temperature=gpu.temperature_c,
        notes=clean(", ".join(notes), 80),
        error=clean(gpu.error, 120),
        odd=odd,
        used_history=used,
        util_history=util,
    )


def fold(rows: Sequence[GpuRow]) -> list[GpuRow]:
    """GPUs that look the same become one row: memory within 3 %, both idle or both busy, no error."""
    groups: list[list[GpuRow]] = []
    for row in rows:
        home = next((group for group in groups if _alike(group[0], row)), None)
        if home is None:
            groups.append([row])
        else:
            home.append(row)
    return [_fold(group) for group in groups]


def _alike(one: GpuRow, other: GpuRow) -> bool:
    if (one.error, one.notes, one.odd, bool(one.ranks)) != (other.error, other.notes, other.odd, bool(other.ranks)):
        return False
    if (one.util is None, (one.util or 0) >= 5) != (other.util is None, (other.util or 0) >= 5):
        return False
    if one.share is None or other.share is None:
        return one.share is other.share
    return abs(one.share - other.share) < 0.03


def _fold(group: list[GpuRow]) -> GpuRow:
    first = group[0]
    if len(group) == 1:
        return first

    def most(values: list[float | None]) -> float | None:
        known = [v for v in values if v is not None]
        return max(known) if known else None

    return first._replace(
        indexes=tuple(i for row in group for i in row.indexes),
        ranks=tuple(rank for row in group for rank in row.ranks),
        inferred=any(row.inferred for row in group),
        power=most([row.power for row in group]),
        temperature=_whole(most([row.temperature for row in group])),
        util=_whole(most([row.util for row in group])),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def paint(view: GpuView, width: int, height: int) -> list[Line]:
    """Rows for the room there is."""
    if not view.rows:
        if view.unavailable:
            rows: list[Line] = [((" no GPU readings: ", "warn"), (view.unavailable, ""))]
            if view.remedy:
                rows.append(((" fix: ", "key"), (view.remedy, "")))
            return [*rows, ((" everything else goes on without them", "dim"),)]
        return [((" no reading yet", "dim"),)]
    rows_in = list(view.rows) if len(view.rows) <= height else fold(view.rows)
    ranks = [_ranks(row) for row in rows_in]
    widths = _Widths(
        index=max(2, *(cell_len(_indexes(row)) for row in rows_in)),
        rank=min(14, max([4, *(cell_len(text) for text in ranks)])),
    ).share_out(width)
    lines = [_line(row, rank, widths, width) for row, rank in zip(rows_in, ranks, strict=True)]
    if height > len(lines) and widths.history:
        lines.insert(0, _header(widths))
    return lines


class _Widths(NamedTuple):
    index: int
    rank: int
    bar: int = 0
    history: int = 0
    second: int = 0
    power: bool = True
    temperature: bool = True

    def share_out(self, width: int) -> _Widths:
        """What is left after the numbers goes to the bar first, then to one and two histories."""
        left = width - (1 + self.index + 1 + self.rank + 1) - 12 - 6  # memory, util
        power = left >= 6 + 7
        left -= 6 if power else 0
        temperature = left >= 4 + 24
        left -= 4 if temperature else 0
        if left < 20:
            return self._replace(bar=max(0, left - 1), power=power, temperature=temperature)
        length = 8 if left < 26 else (12 if left < 60 else 20)
        history = min(SLOTS, left - length - 2)
        second = 0
        if history >= 30:
            history = second = min(SLOTS, (left - length - 3) // 2)
        return self._replace(bar=length, history=history, second=second, power=power, temperature=temperature)


def _indexes(row: GpuRow) -> str:
    return rank_list([str(i) for i in row.indexes]).strip()


def _ranks(row: GpuRow) -> str:
    if not row.ranks:
        return "-"
    return clean(rank_list(row.ranks), 30) + ("~" if row.inferred else "")


def _line(row: GpuRow, rank: str, widths: _Widths, width: int) -> Line:
    mark = "!" if row.odd or row.error else " "
    label = "bad" if row.error else ("odd" if row.odd else "strong")
    spans: list[tuple[str, str]] = [(mark, label), cell(_indexes(row), widths.index, label), (" ", "")]
    spans += [cell(rank, widths.rank, label if row.odd else ("dim" if rank == "-" else "")), (" ", "")]
    if row.error:
        return (*spans, (row.error, "bad"))
    spans += [*bar(row.share, widths.bar), (" ", "")] if widths.bar else []
    spans.append(cell(_memory(row), 12, "strong", "right"))
    spans.append(cell(percent(row.util), 6, _util_style(row.util), "right"))
    if widths.power:
        spans.append(cell("?" if row.power is None else f"{row.power:.0f}W", 6, "dim", "right"))
    if widths.temperature:
        spans.append(cell("?" if row.temperature is None else f"{row.temperature}C", 4, "dim", "right"))
    if widths.history:
        spans += [(" ", ""), *strip(row.used_history, widths.history, float(row.total or 1), "track")]
    if widths.second:
        spans += [(" ", ""), *strip(row.util_history, widths.second, 100.0, "dim")]
    if row.notes:
        spans.append((f" {row.notes}", "warn"))
    return tuple(spans)


def _header(widths: _Widths) -> Line:
    spans = [cell("", 1 + widths.index + 1 + widths.rank + 1 + widths.bar + 1)]
    spans += [cell("GiB", 12, "dim", "right"), cell("util", 6, "dim", "right")]
    spans += [cell("", 6 if widths.power else 0), cell("", 4 if widths.temperature else 0)]
    spans.append(cell(f" mem {widths.history * SLOT_S:.0f}s", widths.history + 1, "dim"))
    if widths.second:
        spans.append(cell(f" util {widths.second * SLOT_S:.0f}s", widths.second + 1, "dim"))
    return tuple(spans)


def _memory(row: GpuRow) -> str:
    return f"{gib(row.used)}/{gib(row.total)}"


def _util_style(util: int | None) -> str:
    if util is None:
        return "dim"
    return "ok" if util >= 5 else "dim"
