"""Panel 2: memory, load and power of each GPU, which rank uses it, and which GPU differs and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from msgspec.structs import replace
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from sgmon.analyse.gpu.summary import GpuSummary, summaries
from sgmon.model import Gpu, GpuSlice, NodeView, Snapshot, Verdict
from sgmon.text import clean
from widgets.gpu_history import history
from widgets.gpu_rows import (
    SLOT_S,
    SLOTS,
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
from widgets.gpu_text import whys
from widgets.line import Line, plain, restyle
from widgets.meters import by_slot
from widgets.panel import Panel

GpuKey = tuple[str, int]  # node, index
#: of so many GPUs the histories are made
_WITH_HISTORY = 32
#: rows from which the history since the first reading is kept ready
_TALL = 14


class GpuView(NamedTuple):
    """What the GPU panel shows."""

    rows: tuple[GpuRow, ...]
    name: str
    driver: str
    simulated: bool
    unavailable: str
    remedy: str


class GpuPanel(Panel[GpuView]):
    """One row per GPU, and below it as much of its summary as fits; equal ones fold when nothing fits."""

    NUMBER = "2"
    TITLE = "GPUs"
    PROBE = "gpu"
    READS = ("gpu", "series", "verdict", "nodes")
    HINTS = (("↵", "detail"),)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "the GPU under the cursor in full", id="gpus.choose")
    ]

    class Chosen(Message):
        """Enter or a second click on a GPU."""

        def __init__(self, index: int, node: str = "") -> None:
            super().__init__()
            self.index, self.node = index, node

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor: GpuKey | None = None
        self._places: dict[int, tuple[GpuKey, ...]] = {}  # row on the screen -> the GPUs that it is about

    def select(self, snapshot: Snapshot) -> GpuView:
        return select(snapshot, long=self.size.height >= _TALL)

    def heading(self, view: GpuView) -> Line:
        return ((view.name, "dim"),) if view.name else ()

    def corner(self, view: GpuView) -> Line:
        if view.simulated:
            return ((" SIMULATED ", "warn"),)
        return ()

    def state_of_rows(self) -> object:
        return self.cursor

    def paint(self, view: GpuView, width: int, height: int) -> Sequence[Line]:
        lines, places = layout(view, width, height)
        self._places = places
        marked = next((place for place, of in places.items() if self.selected in of), None)
        if self.has_focus and marked is not None:
            text = plain(lines[marked][:1])
            lines[marked] = restyle((("▸" + text[1:], "key"), *lines[marked][1:]), "cursor")
        if marked is not None:
            self.top = max(marked - height + 1, min(self.top, marked))
        return lines

    def wanted_rows(self, view: GpuView, width: int, room: int) -> int:
        rows = view.rows if len(view.rows) < room else fold(view.rows)
        return len(_silence(view, room)) + max(1, 1 + len(rows) + sum(len(row.whys) for row in rows))

    def probe_label(self) -> str:
        return (self.snapshot.gpu.source if self.snapshot else "") or "NVML"

    def stale_after_s(self) -> float:
        return 10.0

    # the cursor

    @property
    def selected(self) -> GpuKey | None:
        """The GPU under the cursor. Untouched it is on the first that differs."""
        rows = self.view.rows if self.view is not None else ()
        known = [row.key for row in rows]
        if self.cursor in known:
            return self.cursor
        return next((row.key for row in rows if row.stands_out), known[0] if known else None)

    def action_move(self, rows: int) -> None:
        shown = list(self._places.values())
        at = next((i for i, of in enumerate(shown) if self.selected in of), None)
        if at is None:
            return
        self.cursor = shown[max(0, min(len(shown) - 1, at + rows))][0]
        self.update_view()

    def action_choose(self) -> None:
        if self.selected is not None:
            self.post_message(self.Chosen(self.selected[1], self.selected[0]))

    def on_click(self, event: events.Click) -> None:
        place = event.y - 1 + self.top
        above = [row for row in self._places if row <= place]
        if above and event.y > 0 and not self.screen.selections:
            self.cursor = self._places[max(above)][0]
            self.update_view()
            if event.chain > 1:
                self.action_choose()

    def on_resize(self, event: events.Resize) -> None:
        self.view = None
        super().on_resize(event)


def select(snapshot: Snapshot, long: bool = True) -> GpuView:
    """Rows with their summaries from a snapshot. long: also the history since the first reading."""
    if snapshot.nodes:
        return _of_nodes(snapshot, long)
    reading = snapshot.gpu
    series = {item.name: item.points for item in snapshot.series if item.name.startswith("gpu")}
    now = math.floor(snapshot.t / SLOT_S) * SLOT_S  # whole slots only: a flat history stays as it is
    odd = set(snapshot.verdict.odd_ranks)
    known = summaries(snapshot)
    spinning = [summary.index for summary in known if summary.work == "spins"]
    rows = []
    for gpu, summary in zip(reading.gpus, known, strict=True):
        used, util, power = (series.get(f"gpu{gpu.index}.{what}", ()) for what in ("used", "util", "power"))
        row = _row(gpu, summary, bool(odd.intersection(gpu.ranks)), spinning)._replace(
            used_history=tuple(by_slot(used, now, SLOTS, SLOT_S)),
            util_history=tuple(by_slot(util, now, SLOTS, SLOT_S)),
            long=history(used, util, power, snapshot.t) if long else None,
        )
        rows.append(row if row.odd or not odd else row.beside_the_culprit())
        rows += [_slice_row(gpu, part) for part in gpu.slices]
    names = {gpu.name for gpu in reading.gpus if gpu.name}
    name = ""
    if len(names) == 1:
        count = len(reading.gpus)
        name = f"{count} × {clean(names.pop(), 30)}" if count > 1 else clean(names.pop(), 30)
    return GpuView(
        rows=tuple(rows),
        name=name,
        driver=clean(reading.driver, 20),
        simulated=reading.simulated,
        unavailable=clean(reading.unavailable, 200),
        remedy=clean(reading.remedy, 200),
    )


def _of_nodes(snapshot: Snapshot, long: bool) -> GpuView:
    """The GPUs of all nodes: what differs first; of many no histories."""
    count = sum(len(view.snapshot.gpu.gpus) for view in snapshot.nodes)
    views = []
    for view in snapshot.nodes:
        blamed = not snapshot.verdict.nodes or view.name in snapshot.verdict.nodes
        odd = snapshot.verdict.odd_ranks if blamed else ()
        views.append((view, _of_node(view, odd, count <= _WITH_HISTORY, long)))
    is_told = bool(snapshot.verdict.odd_ranks)
    rows = [
        (row if row.odd or not is_told else row.beside_the_culprit())._replace(
            node=clean(view.name, 24), keys=((view.name, row.indexes[0]),)
        )
        for view, found in views
        for row in (found.rows if view.heard else map(_as_last_heard, found.rows))
    ]
    names = sorted({gpu.name for view in snapshot.nodes for gpu in view.snapshot.gpu.gpus if gpu.name})
    missing = [(view.name, found) for view, found in views if found.unavailable]
    return GpuView(
        rows=tuple(sorted(rows, key=lambda row: not row.stands_out)),
        name=f"{count} × {clean(', '.join(names), 30)}" if names else "",
        driver=next((found.driver for _, found in views if found.driver), ""),
        simulated=any(found.simulated for _, found in views),
        unavailable=f"{clean(missing[0][0], 24)}: {missing[0][1].unavailable}" if missing else "",
        remedy=missing[0][1].remedy if missing else "",
    )


#: node -> (what its rows were made of, the rows): most nodes of many are as they were at the snapshot before
_kept: dict[str, tuple[tuple[object, ...], GpuView]] = {}


def _of_node(view: NodeView, odd: tuple[str, ...], has_history: bool, long: bool) -> GpuView:
    """The GPUs of one node."""
    own = view.snapshot if has_history else replace(view.snapshot, series=())
    parts = (own.gpu, own.gpu_loads, own.series, own.log.milestones, own.server)
    seen = (*map(id, parts), odd, has_history, long, own.t // SLOT_S)
    kept = _kept.get(view.name)
    if kept is None or kept[0][0] != seen:
        found = select(replace(own, verdict=Verdict("", "", odd_ranks=odd)), long=long and has_history)
        kept = _kept[view.name] = ((seen, parts), found)  # the parts are held, so that an id stays theirs
    return kept[1]


def _as_last_heard(row: GpuRow) -> GpuRow:
    """Of a node that is silent: what its memory was; what it does now is not known."""
    return row._replace(util=None, power=None, temperature=None, whys=(), odd=False, notes="as last heard")


def _row(gpu: Gpu, summary: GpuSummary, odd: bool, spinning: Sequence[int]) -> GpuRow:
    return GpuRow(
        indexes=(gpu.index,),
        keys=(("", gpu.index),),
        ranks=gpu.ranks,
        inferred=gpu.ranks_inferred,
        used=gpu.used_bytes,
        total=gpu.total_bytes,
        util=gpu.util_percent,
        power=gpu.power_w,
        temperature=gpu.temperature_c,
        error=clean(gpu.error, 120),
        odd=odd,
        whys=whys(gpu, summary, spinning),
        notes="MIG" if gpu.mig and not gpu.slices else "",
        gpu=gpu,
        summary=summary,
    )


def _slice_row(gpu: Gpu, part: GpuSlice) -> GpuRow:
    """A MIG instance as a row of its own: it has memory and holders; load and power are the whole card's."""
    holders = ", ".join(f"{one.rank or clean(one.name, 30) or 'pid'} {one.pid}" for one in part.processes)
    name = clean(part.name, 40).rpartition("MIG ")[2] or f"slice {part.slot}"
    return GpuRow(
        indexes=(gpu.index,),
        keys=(("", gpu.index),),
        ranks=tuple(process.rank for process in part.processes if process.rank),
        inferred=False,
        used=part.used_bytes,
        total=part.total_bytes,
        util=None,
        power=None,
        temperature=None,
        error="",
        odd=False,
        whys=(),
        notes=f"{name} slot {part.slot}" + (f": {holders}" if holders else ""),
        gpu=gpu,
        summary=GpuSummary(gpu.index),
    )


def paint(view: GpuView, width: int, height: int) -> list[Line]:
    """Rows for the room there is."""
    return layout(view, width, height)[0]


def layout(view: GpuView, width: int, height: int) -> tuple[list[Line], dict[int, tuple[GpuKey, ...]]]:
    """The lines, and which of them begins which GPU."""
    silent = _silence(view, height)
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


def _silence(view: GpuView, height: int) -> list[Line]:
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
