"""What the GPU panel shows: a row for each GPU and MIG instance, of one node or of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sgmon.analyse.gpu.summary import GpuSummary, summaries
from sgmon.model import Gpu, GpuSlice, NodeView, Snapshot, Verdict
from sgmon.text import clean
from sgmon.units import rough
from widgets.gpu_history import history
from widgets.gpu_rows import SLOT_S, SLOTS, GpuRow
from widgets.gpu_text import whys
from widgets.meters import by_slot

#: of so many GPUs the histories are made
_WITH_HISTORY = 32


class GpuView(NamedTuple):
    """What the GPU panel shows."""

    rows: tuple[GpuRow, ...]
    name: str
    driver: str
    simulated: bool
    unavailable: str
    remedy: str


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
        summary=_in_steps(summary),
    )


def _in_steps(summary: GpuSummary) -> GpuSummary:
    """Its times in the steps in which they are shown: what looks the same is not painted again."""
    flat_s = summary.growth.flat_s
    if flat_s is None:
        return summary
    return replace(summary, growth=replace(summary.growth, flat_s=float(rough(flat_s) or flat_s)))


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
