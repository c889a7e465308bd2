"""One row of the GPU panel: what it shows, how equal ones fold, how it is painted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sgmon.analyse.gpu.summary import GpuSummary
from sgmon.model import Gpu
from sgmon.text import clean
from sgmon.units import gib, percent, plural, rank_list
from widgets.gpu_history import History, memory_rows
from widgets.gpu_text import growth_words, held_line, plan_line, power_line
from widgets.line import Line, cell, cell_len, crop, short_name, width_of
from widgets.meters import bar, strip

SLOTS = 40
SLOT_S = 3.0


class GpuRow(NamedTuple):
    """One GPU, or several that look the same. whys: (sentence, style), the worst first."""

    indexes: tuple[int, ...]
    ranks: tuple[str, ...]
    inferred: bool
    used: int | None
    total: int | None
    util: int | None
    power: float | None
    temperature: int | None
    error: str
    odd: bool
    whys: tuple[tuple[str, str], ...]
    notes: str
    gpu: Gpu
    summary: GpuSummary
    used_history: tuple[float | None, ...] = ()
    util_history: tuple[float | None, ...] = ()
    long: History | None = None
    keys: tuple[tuple[str, int], ...] = ()  # (node, index) of each
    node: str = ""  # "" on a single machine
    nodes: int = 0  # of a folded row: how many

    @property
    def key(self) -> tuple[str, int]:
        """Of its first GPU."""
        return self.keys[0] if self.keys else ("", self.indexes[0])

    @property
    def share(self) -> float | None:
        if self.used is None or not self.total:
            return None
        return self.used / self.total

    def beside_the_culprit(self) -> GpuRow:
        """The same row while another rank is the odd one: what follows from that one is told, and not marked."""
        return self._replace(whys=tuple((words, "dim" if style == "odd" else style) for words, style in self.whys))

    @property
    def stands_out(self) -> bool:
        return self.odd or bool(self.error) or any(style in ("odd", "bad") for _, style in self.whys)


def fold(rows: Sequence[GpuRow]) -> list[GpuRow]:
    """GPUs that look the same become one row: memory within 3 %, both idle or both busy, nothing that differs."""
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
    if one.summary.findings != other.summary.findings:
        return False
    if one.summary.work != "spins" and (one.util is None, (one.util or 0) >= 5) != (
        other.util is None,
        (other.util or 0) >= 5,
    ):
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
        nodes=len({row.node for row in group}),
        keys=tuple(key for row in group for key in row.keys),
        indexes=tuple(i for row in group for i in row.indexes),
        ranks=tuple(rank for row in group for rank in row.ranks),
        inferred=any(row.inferred for row in group),
        power=most([row.power for row in group]),
        temperature=_whole(most([row.temperature for row in group])),
        util=_whole(most([row.util for row in group])),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


class Widths(NamedTuple):
    """Column widths; 0 or False leaves a column out."""

    index: int
    rank: int
    bar: int = 0
    history: int = 0
    second: int = 0
    power: bool = True
    temperature: bool = True

    def share_out(self, width: int) -> Widths:
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


def widths_for(rows: Sequence[GpuRow], width: int) -> Widths:
    """Columns that fit all rows."""
    return Widths(
        index=max(2, *(cell_len(indexes(row)) for row in rows)),
        rank=min(14, max([4, *(cell_len(rank_words(row)) for row in rows)])),
    ).share_out(width)


def indexes(row: GpuRow) -> str:
    """ "3", "0-2,4-7"; of several nodes "node-b 3", "504 on 63 nodes"."""
    if row.nodes > 1:
        return f"{len(row.indexes)} on {row.nodes} nodes"
    if row.node:
        return f"{short_name(row.node, 12)} {rank_list([str(i) for i in row.indexes]).strip()}"
    return rank_list([str(i) for i in row.indexes]).strip()


def rank_words(row: GpuRow) -> str:
    """ "TP0"; "~" marks what was inferred, "-" that no rank is there."""
    if not row.ranks:
        return "-"
    if len(row.ranks) > 16 and row.nodes > 1:
        return plural(len(row.ranks), "rank")
    return clean(rank_list(row.ranks), 30) + ("~" if row.inferred else "")


def row_line(row: GpuRow, widths: Widths) -> Line:
    """The numbers of a GPU."""
    rank = rank_words(row)
    mark = "!" if row.stands_out else " "
    label = "bad" if row.error else ("odd" if row.stands_out else "")
    spans: list[tuple[str, str]] = [(mark, label), cell(indexes(row), widths.index, label), (" ", "")]
    spans += [cell(rank, widths.rank, label if row.stands_out else ("dim" if rank == "-" else "")), (" ", "")]
    if row.error:
        return (*spans, (row.error, "bad"))
    spans += [*bar(row.share, widths.bar), (" ", "")] if widths.bar else []
    spans.append(cell(f"{gib(row.used)}/{gib(row.total)}", 12, "", "right"))
    spans.append(cell(percent(row.util), 6, _util_style(row), "right"))
    if widths.power:
        spans.append(cell("?" if row.power is None else f"{_steady(row.power)}W", 6, "dim", "right"))
    if widths.temperature:
        spans.append(cell("?" if row.temperature is None else f"{row.temperature}C", 4, "dim", "right"))
    if widths.history:
        spans += [(" ", ""), *strip(row.used_history, widths.history, float(row.total or 1), "track")]
    if widths.second:
        spans += [(" ", ""), *strip(row.util_history, widths.second, 100.0, "dim")]
    if row.notes:
        spans.append((f" {row.notes}", "warn"))
    return tuple(spans)


def _steady(watts: float) -> int:
    """In steps of 5 W: the noise of a sensor is no news; the GPU's page has the figure."""
    return 5 * round(watts / 5)


def header_line(widths: Widths) -> Line:
    """Names of the columns."""
    spans = [cell("", 1 + widths.index + 1 + widths.rank + 1 + (widths.bar + 1 if widths.bar else 0))]
    spans += [cell("GiB", 12, "dim", "right"), cell("util", 6, "dim", "right")]
    spans += [cell("", 6 if widths.power else 0), cell("", 4 if widths.temperature else 0)]
    if widths.history:
        spans.append(cell(f" mem {widths.history * SLOT_S:.0f}s", widths.history + 1, "dim"))
    if widths.second:
        spans.append(cell(f" util {widths.second * SLOT_S:.0f}s", widths.second + 1, "dim"))
    return tuple(spans)


def why_rows(row: GpuRow) -> list[Line]:
    """One row for each reason why this GPU is not like the others."""
    return [((" ↳ ", "dim"), (words, style)) for words, style in row.whys]


def held_rows(row: GpuRow, width: int) -> list[Line]:
    """Who holds its memory, and how that moves."""
    words = growth_words(row.summary)
    moves: Line = ((f"  {words}", "info" if words.startswith(("+", "-")) else "dim"),) if words else ()
    held = held_line(row.gpu, row.summary)
    return [(("    ", ""), *crop(held, max(12, width - 4 - width_of(moves))), *moves)]


def plan_rows(row: GpuRow, width: int) -> list[Line]:
    """What the log says that it holds."""
    line = plan_line(row.summary)
    return [_fitting((("    ", ""), *line), width)] if line else []


def power_rows(row: GpuRow, width: int) -> list[Line]:
    """Power beside the card's own levels, PCIe, clock."""
    return [_fitting((("    ", ""), *power_line(row.gpu, row.summary)), width)]


def _fitting(line: Line, width: int) -> Line:
    """Without the last parts that do not fit as a whole; the first two always stay."""
    while len(line) > 2 and width_of(line) > width:
        line = line[:-1]
    return line


def history_rows(row: GpuRow, width: int) -> list[Line]:
    """Memory since the first reading, with the stages of the start."""
    if row.long is None or not row.long.used:
        return []
    return [
        (("    ", ""), *line) for line in memory_rows(row.long, row.summary.stages, float(row.total or 1), width - 5)
    ]


def _util_style(row: GpuRow) -> str:
    if row.util is None:
        return "dim"
    if row.summary.work == "spins":
        return "odd" if row.stands_out else "dim"
    return "ok" if row.util >= 5 else "dim"
