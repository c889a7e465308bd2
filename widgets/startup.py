"""Panel 1: where each rank is between spawn and ready."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sgmon.model import Bar, Snapshot
from sgmon.servers import registry
from sgmon.servers.phases import Phase
from sgmon.text import clean
from sgmon.units import age, plural, rank_list, rough
from widgets.ages import ago
from widgets.line import Line, cell, cell_len, crop_text, short_name, width_of
from widgets.meters import bar
from widgets.panel import Panel
from widgets.phases import DONE, NEXT, NOT_OURS, NOW, UNKNOWN, RankRow, columns_for, is_gone, phase_times, rank_rows

#: behind the words of a row, which go without it where there is no room
_AGE = re.compile(r" \S+ ago$")
_MARKS = {DONE: ("✓", "ok"), NOW: ("▶", "info"), NEXT: ("▷", "info"), NOT_OURS: (" ", ""), UNKNOWN: ("?", "dim")}


class BarView(NamedTuple):
    """One progress bar of the log."""

    name: str
    rank: str
    done: int
    total: int
    moved_s: int | None


class StartupView(NamedTuple):
    """What the startup panel shows."""

    columns: tuple[Phase, ...]
    rows: tuple[RankRow, ...]
    bars: tuple[BarView, ...]
    took: tuple[tuple[str, int], ...]
    total_s: int | None
    usual: tuple[tuple[str, float], ...]  # (phase, median seconds) of finished starts like this one
    usual_s: float | None  # of a whole start
    to_go_s: int | None
    identity: str
    up_s: int | None  # until its end, if it is gone
    is_gone: bool
    state: str


class StartupPanel(Panel[StartupView]):
    """Rank by phase; ranks in the same place fold into one row."""

    NUMBER = "1"
    TITLE = "startup"
    READS = ("server", "log", "procs", "ranks", "verdict", "clocks")
    HINTS = (("d", "stack"), ("D", "all stacks"))

    def select(self, snapshot: Snapshot) -> StartupView:
        return select(snapshot)

    def heading(self, view: StartupView) -> Line:
        room = self.size.width - width_of(self.corner(view)) - len(f" {self.NUMBER} {self.TITLE}   ")
        return ((_whole_parts(view.identity, room), "dim"),) if view.identity else ()

    def corner(self, view: StartupView) -> Line:
        word = "ran" if view.is_gone else "up"
        return ((f" {word} {age(view.up_s)} ", "dim"),) if view.up_s is not None else ()

    def paint(self, view: StartupView, width: int, height: int) -> Sequence[Line]:
        return paint(view, width, height)


def _whole_parts(identity: str, room: int) -> str:
    """As many of the parts as fit, at least the model: half a pid tells nothing."""
    while cell_len(identity) > room and " · " in identity:
        identity = identity.rpartition(" · ")[0]
    return identity


def select(snapshot: Snapshot) -> StartupView:
    """Rows, bars and times from a snapshot."""
    server = snapshot.server
    identity, up_s = "", None
    args = server.args if server is not None else snapshot.log.args
    if args is not None and snapshot.family:
        model = clean((args.served_name or args.model_path).rstrip("/").rsplit("/", 1)[-1], 40)
        shape = " ".join(
            f"{name}{count}"
            for name, count in (("TP", args.tp), ("DP", args.dp), ("PP", args.pp), ("EP", args.ep))
            if count > 1
        )
        if snapshot.nodes:
            shape = f"{shape} on {len(snapshot.nodes)} nodes".strip()
        elif args.nnodes > 1:
            shape = f"{shape} node {args.node_rank} of {args.nnodes}".strip()
        label = registry.get(snapshot.family).label
        number = server.version if server is not None else snapshot.log.version
        version = f"{label} {clean(number, 30)}" if number else ""
        pid = f"pid {server.pid}" if server is not None else ""
        identity = " · ".join(part for part in (model, shape, version, pid) if part)
        if snapshot.has_own_servers:
            identity = plural(sum(view.server is not None for view in snapshot.nodes), "server")
        if server is not None and server.started_epoch is not None:
            until_t = snapshot.verdict.since_t if is_gone(snapshot) else snapshot.t
            up_s = rough(max(0.0, snapshot.epoch + until_t - server.started_epoch))
    base, to_go = snapshot.baseline, snapshot.eta.remains_s
    return StartupView(
        columns=columns_for(snapshot),
        rows=rank_rows(snapshot),
        bars=_bars(snapshot),
        took=() if snapshot.has_own_servers else phase_times(snapshot),  # several servers: each took its own
        total_s=_total_s(snapshot),
        usual=tuple((one.phase, one.median_s) for one in base.phases) if base is not None else (),
        usual_s=base.ready_median_s if base is not None else None,
        to_go_s=None if to_go is None else rough(to_go),
        identity=identity,
        up_s=up_s,
        is_gone=is_gone(snapshot),
        state=snapshot.verdict.state,
    )


def _total_s(snapshot: Snapshot) -> int | None:
    """How long the start has taken, until ready; None: not known, or over without."""
    if snapshot.has_own_servers:
        return None
    if snapshot.log.ready_line is not None:
        return None if snapshot.eta.took_s is None else round(snapshot.eta.took_s)
    began = snapshot.began_t
    return None if began is None or snapshot.verdict.state == "crashed" else rough(snapshot.t - began)


def _bars(snapshot: Snapshot) -> tuple[BarView, ...]:
    """The newest bars, the one that moved last first; none once the server serves."""
    if snapshot.log.ready_line is not None:
        return ()
    newest = sorted(snapshot.log.bars, key=_bar_time, reverse=True)[:2]
    return tuple(
        BarView(
            name=item.label,
            rank=item.rank,
            done=item.done,
            total=item.total,
            moved_s=None if item.moved_t is None else rough(snapshot.t - item.moved_t),
        )
        for item in newest
    )


def _bar_time(item: Bar) -> float:
    return item.moved_t if item.moved_t is not None else item.seen_t or 0.0


def paint(view: StartupView, width: int, height: int) -> list[Line]:
    """Column names, one row per group, the bar, the times; what does not fit goes in that order from the end."""
    most = 26 if any(row.nodes for row in view.rows) else 14
    label = min(most, max([8, *(cell_len(_label(row)) for row in view.rows)]) + 2)
    names, widths = _plan(view.columns, width - label)
    has_failed, has_ended = view.state == "crashed", view.state == "ended"
    body = [
        _row_line(row, label, widths, width, (has_failed and _is_culprit(row, view), has_ended or has_failed))
        for row in view.rows
    ]
    bars = [_bar_line(item, width) for item in view.bars]
    times = _time_lines(view, label, widths, width)
    head: Line = (cell("", label), *(cell(n, w, "dim") for n, w in zip(names, widths, strict=True)))
    rows = [head, *body]
    if len(view.rows) == 1:  # a single rank has cells of its own in every column: its words get a row
        rows.append((cell(" last", label, "dim"), (_words(view.rows[0]), "dim")))
    if len(rows) > height and len(view.rows) > 1 and view.rows[-1].kind == "main":
        rows.pop()
    if bars and height > len(rows):
        rows += bars[: 1 if height - len(rows) < 3 else 2]
    for line in times[: max(0, height - len(rows))]:
        rows.insert(1 + len(body), line)
    return rows


def _is_culprit(row: RankRow, view: StartupView) -> bool:
    return row.odd or not any(one.odd for one in view.rows)


def _plan(columns: Sequence[Phase], room: int) -> tuple[list[str], list[int]]:
    """Column names and widths: long names where they fit, else short ones; spare cells go to all alike."""
    for index, least in ((0, 5), (1, 4)):
        names = [phase.short if index else phase.column for phase in columns]
        widths = [max(least, cell_len(name) + 1) for name in names]
        if sum(widths) <= room or index:
            break
    spare = min(3, max(0, room - sum(widths) - 24) // max(1, len(widths)))
    return names, [w + spare for w in widths]


def _label(row: RankRow) -> str:
    name = "launcher" if row.kind == "main" else clean(rank_list(row.ranks), 40) if row.ranks != ("",) else "rank"
    if not row.nodes:
        return name
    return f"{short_name(row.nodes[0], 14) if len(row.nodes) == 1 else plural(len(row.nodes), 'node')} {name}"


def _row_line(row: RankRow, label_width: int, widths: Sequence[int], width: int, ends: tuple[bool, bool]) -> Line:
    mark = "!" if row.odd else " "
    label_style = "odd" if row.odd else ("dim" if row.kind == "main" else "")
    has_failed, has_ended = ends
    spans = [cell(crop_text(mark + _label(row), label_width - 1), label_width, label_style)]
    for state, cells in zip(row.cells, widths, strict=True):
        glyph, style = _MARKS.get(state, ("·", "dim"))
        if has_failed and state in (NOW, NEXT):
            spans.append(cell("✗", cells, "bad"))
            continue
        if has_ended and state in (NOW, NEXT):
            glyph, style = "□", "dim"
        spans.append(cell(glyph, cells, "odd" if row.odd and state in (NOW, NEXT) else style))
    words = _words(row)
    style = "odd" if row.odd else ("info" if row.kind == "importing" else "dim")
    if NOT_OURS not in row.cells:
        return tuple(spans)
    return _with_words(tuple(spans), words, style, width)


def _words(row: RankRow) -> str:
    return row.last.replace("_", " ") + (f" {ago(row.for_s)}" if row.for_s is not None else "")


def _with_words(line: Line, words: str, style: str, width: int) -> Line:
    """Words over the first cells that are not this row's own (and what is free at the end), where they fit best."""
    spare = width - sum(cell_len(text) for text, _ in line)
    tail = len(line)
    while tail > 1 and not line[tail - 1][0].strip():
        tail -= 1
    behind = spare + sum(cell_len(text) for text, _ in line[tail:])
    lead = 1
    while lead < len(line) and not line[lead][0].strip():
        lead += 1
    before = sum(cell_len(text) for text, _ in line[1:lead])
    if before > cell_len(words):
        return (line[0], cell(words, before, style), *line[lead:])
    if behind >= 10:
        for shorter in (words.removesuffix(" ago"), _AGE.sub("", words)):
            words = words if cell_len(words) <= behind else shorter
        return (*line[:tail], cell(words, behind, style))
    return line


def _bar_line(item: BarView, width: int) -> Line:
    """ " weight shards ██████░░ 58/64  91%  moved 2s ago (TP0 counts for all)"."""
    share = item.done / item.total if item.total else None
    name = f" {clean(item.name, 20)} "
    numbers = f" {item.done}/{item.total}"
    numbers += f" {share * 100:.0f}%" if share is not None else ""
    moved = "" if item.moved_s is None else f"  moved {ago(item.moved_s)}"
    who = f" ({clean(item.rank, 12)} counts for all)" if item.rank else ""
    tail = numbers + moved + who
    if width - cell_len(name) - cell_len(tail) < 10:
        tail = numbers + moved
    length = max(6, min(40, width - cell_len(name) - cell_len(tail) - 1))
    style = "ok" if share == 1 else "info"
    return ((name, ""), *bar(share, length, style), (numbers, "strong"), (tail[len(numbers) :], "dim"))


def _time_lines(view: StartupView, label_width: int, widths: Sequence[int], width: int) -> list[Line]:
    """What each phase took, and what it usually takes; the last to be shown first."""
    took = {phase: float(seconds) for phase, seconds in view.took}
    total = f"total {age(view.total_s)}" if view.total_s is not None else ""
    has_times = any(phase.name in took for phase in view.columns)
    lines = [_time_line(" took", took, total, view, (label_width, widths, width))] if has_times or total else []
    if view.usual:
        total = f"total {age(view.usual_s)}" if view.usual_s is not None else ""
        total += f", to go ~{age(view.to_go_s)}" if view.to_go_s is not None else ""
        lines.insert(0, _time_line(" usual", dict(view.usual), total, view, (label_width, widths, width)))
    return lines


def _time_line(
    name: str, times: dict[str, float], total: str, view: StartupView, room: tuple[int, Sequence[int], int]
) -> Line:
    label_width, widths, width = room
    spans = [cell(name, label_width, "dim")]
    for phase, cells in zip(view.columns, widths, strict=True):
        text = age(times[phase.name]) if phase.name in times else ""
        spans.append(cell(text if cell_len(text) < cells else "", cells, "dim"))
    return _with_words((*spans, ("", "")), total, "dim", width)
