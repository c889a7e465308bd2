"""Panel 5 where several nodes are watched: each node's link, clock, phase and state; what differs between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sgmon.model import ComparedValue, NodeView, Snapshot
from sgmon.servers import registry
from sgmon.text import clean
from sgmon.units import address, age, duration, plural, rough
from widgets.line import Line, cell, cell_len, crop_text, short_name, width_of
from widgets.panel import Panel
from widgets.states import state_style

#: looks of the states of a link
_LINKS = {
    "live": ("●", "ok"),
    "connecting": ("◌", "info"),
    "stale": ("◌", "warn"),
    "lost": ("✗", "bad"),
    "failed": ("✗", "bad"),
    "ended": ("□", "dim"),
}
#: a clock that is off by less than this is right for all that is shown
_RIGHT_S = 0.05
_NARROW = 50
#: cells of a name of what is compared, of one of its values at least and at most
_LABEL, _LEAST, _VALUE = 22, 10, 28


class NodeRow(NamedTuple):
    """One node, or several that look the same."""

    names: tuple[str, ...]
    link: str
    why: str
    silent_s: int | None  # None: it is heard
    offset_s: float | None
    error_s: float | None
    phase: str
    state: str
    ranks: int
    port: str
    odd: bool

    @property
    def is_well(self) -> bool:
        """Nothing about it is news."""
        return self.link == "live" and not self.odd and self.silent_s is None

    @property
    def fold_key(self) -> tuple[object, ...]:
        """Nodes with the same key may be shown as one."""
        return (self.is_well, self.link, self.why, self.phase, self.state, self.odd, self.silent_s is None)


class NodesView(NamedTuple):
    """What the panel shows."""

    rows: tuple[NodeRow, ...]
    compared: tuple[ComparedValue, ...]
    names: tuple[str, ...]


class NodesPanel(Panel[NodesView]):
    """One row a node, those that differ first; equal ones fold when there is no room. Zoomed: versions and flags."""

    NUMBER = "5"
    TITLE = "nodes"
    READS = ("nodes", "verdict", "compared")
    HINTS = (("z", "versions and flags"),)

    def select(self, snapshot: Snapshot) -> NodesView:
        return select(snapshot)

    def heading(self, view: NodesView) -> Line:
        count = sum(len(row.names) for row in view.rows)
        silent = sum(len(row.names) for row in view.rows if row.silent_s is not None)
        words: Line = ((plural(count, "node"), "dim"),)
        return (*words, (f", {silent} silent", "warn")) if silent else words

    def corner(self, view: NodesView) -> Line:
        count = sum(row.differs for row in view.compared)
        return ((f" {plural(count, 'difference')} ", "badge-warn"),) if count else ()

    def paint(self, view: NodesView, width: int, height: int) -> Sequence[Line]:
        return paint(view, width, height)

    def wanted_rows(self, view: NodesView, width: int, room: int) -> int:
        rows = len(view.rows) if len(view.rows) <= min(room, 8) else len(fold(view.rows))
        return rows + min(2, sum(row.differs for row in view.compared))


def select(snapshot: Snapshot) -> NodesView:
    """Rows and differences from a snapshot."""
    rows = [_row(snapshot, view) for view in snapshot.nodes]
    names = tuple(clean(view.name, 24) or "here" for view in snapshot.nodes)
    return NodesView(tuple(sorted(rows, key=lambda row: row.is_well)), snapshot.compared, names)


def _row(snapshot: Snapshot, view: NodeView) -> NodeRow:
    reading, own = view.reading, view.snapshot
    said_t = max(own.t, reading.since_t or 0.0) if reading is not None else own.t
    link = reading.state if reading is not None else "live"
    port = own.port
    words = registry.get(own.family).phases.words(own.phase) if view.server is not None else "no server"
    return NodeRow(
        names=(clean(view.name, 24) or "here",),
        link=link if view.heard or link != "live" else "stale",
        why=clean(reading.why, 120) if reading is not None else "",
        silent_s=None if view.heard else rough(snapshot.t - said_t),
        offset_s=reading.offset_s if reading is not None else None,
        error_s=reading.offset_error_s if reading is not None else None,
        phase=words,
        state=own.verdict.state if view.server is not None else "waiting",
        ranks=len(own.ranks),
        port="" if port is None else f"{address(port.host, port.port)} {port.status or port.answer}",
        odd=view.name in snapshot.verdict.nodes,
    )


def fold(rows: Sequence[NodeRow]) -> list[NodeRow]:
    """Nodes that look the same become one row."""
    groups: dict[tuple[object, ...], list[NodeRow]] = {}
    for row in rows:
        groups.setdefault(row.fold_key, []).append(row)
    return [
        group[0]._replace(
            names=tuple(name for row in group for name in row.names),
            ranks=sum(row.ranks for row in group),
            silent_s=max((row.silent_s for row in group if row.silent_s is not None), default=None),
        )
        for group in groups.values()
    ]


def paint(view: NodesView, width: int, height: int) -> list[Line]:
    """The nodes, then what differs between them, then everything that is compared, as far as there is room."""
    rows = list(view.rows) if len(view.rows) <= height else fold(view.rows)
    name = min(16, max(cell_len(_name(row)) for row in rows) + 1)
    lines = [_line(row, name, width) for row in rows]
    spare = height - len(lines)
    differing = [row for row in view.compared if row.differs]
    same = [row for row in view.compared if not row.differs]
    if width < _NARROW:
        told = (f"{row.name}: {_counted([v or '?' for v in row.values], view.names)}" for row in differing)
        return lines + [(("≠ ", "warn"), (words, "warn")) for words in list(told)[: max(0, spare)]]
    table = list(_table(differing, view.names, width)) + list(_table(same, view.names, width))
    if height > len(lines) + len(differing) + 4:  # zoomed: there is room for all of it
        return [*lines, (), _head(view.names, width), *table]
    return lines + list(_table(differing, view.names, width))[: max(0, spare)]


def _name(row: NodeRow) -> str:
    return row.names[0] if len(row.names) == 1 else plural(len(row.names), "node")


def _line(row: NodeRow, name: int, width: int) -> Line:
    glyph, style = _LINKS.get(row.link, ("?", "warn"))
    look = state_style(row.state)
    line: Line = (
        ("!" if row.odd else " ", "odd"),
        (glyph, style),
        (" ", ""),
        cell(short_name(_name(row), name - 1), name, "odd" if row.odd else "strong"),
    )
    if row.silent_s is not None:
        silent = f"no word for {age(row.silent_s)}"
        return (*line, (silent, "warn"), (f": {row.why}" if row.why else "", "dim"))
    words = f"{look.glyph} {look.word.lower()}"
    if width < _NARROW:
        return (*line, (words, look.text_style))
    parts: Line = (
        cell(crop_text(words, 15), 16, look.text_style),
        cell(crop_text(row.phase, 26), 27, ""),
        cell(plural(row.ranks, "rank"), 10, "dim"),
    )
    clock: Line = ((_clock(row), "warn" if abs(row.offset_s or 0.0) >= 1.0 else "dim"),)
    port: Line = ((f"  port {row.port}", "dim"),) if row.port else ()
    whole = (*line, *parts, *clock, *port)
    return whole if width_of(whole) <= width else (*line, *parts[:1], (row.phase, ""), ("  ", ""), *clock)


def _clock(row: NodeRow) -> str:
    """ "clock +1m40s ±3ms"; of several nodes folded ""."""
    if row.offset_s is None or len(row.names) > 1:
        return ""
    error = f" ±{_short(row.error_s)}" if row.error_s is not None else ""
    if abs(row.offset_s) < _RIGHT_S:
        return f"clock right{error}"
    return f"clock {'+' if row.offset_s > 0 else '-'}{_short(abs(row.offset_s))}{error}"


def _short(seconds: float) -> str:
    """ "3ms", "0.4s", "1m40s"."""
    return f"{max(1, round(seconds * 1000))}ms" if seconds < 0.1 else duration(seconds)


def _columns(count: int, width: int) -> int:
    """Cells of one value; 0: there is no room for a column a node."""
    each = (width - 2 - _LABEL) // max(1, count)
    return min(_VALUE, each) if each >= _LEAST else 0


def _head(names: Sequence[str], width: int) -> Line:
    """Names of the columns of what is compared."""
    each = _columns(len(names), width)
    return (cell("", 2 + _LABEL), *(cell(short_name(name, each - 1), each, "dim") for name in names if each))


def _table(rows: Sequence[ComparedValue], names: Sequence[str], width: int) -> Iterator[Line]:
    """A row for each value that is compared: a column a node, or how many have which where there is no room."""
    each = _columns(len(names), width)
    for row in rows:
        style = "odd" if row.differs else "dim"
        texts = ["?" if one is None else clean(one, 60) or "not given" for one in row.values]
        alike = len(set(texts)) == 1
        cells = [cell(crop_text(text, each - 1), each, style) for text in texts]
        if alike or not each:
            cells = [(texts[0] if alike else _counted(texts, names), style)]
        yield (("≠ " if row.differs else "  ", "odd"), cell(clean(row.name, _LABEL - 1), _LABEL, style), *cells)


def _counted(texts: Sequence[str], names: Sequence[str]) -> str:
    """ "0.5.22 on node-01, 0.5.23 ×63": the rarest first."""
    seen: dict[str, list[str]] = {}
    for text, name in zip(texts, names, strict=True):
        seen.setdefault(text, []).append(name)
    rare = sorted(seen.items(), key=lambda item: len(item[1]))
    return ", ".join(f"{text} on {who[0]}" if len(who) == 1 else f"{text} ×{len(who)}" for text, who in rare)
