"""The columns of the workers panel: which ones have room, and the line of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sgmon.units import age, percent, rate, size
from widgets.ages import ago
from widgets.line import Line, cell, cell_len, crop_text, short_name
from widgets.worker_rows import WorkerRow


class Layout(NamedTuple):
    """Column widths; 0 leaves a column out."""

    label: int
    pid: int
    state: int
    cpu: int
    rss: int
    read: int
    activity: int
    shards: int
    blocked: int
    node: int = 0


def plan(rows: Sequence[WorkerRow], width: int) -> Layout:
    """Columns by importance: who, state, CPU, last activity, what it is blocked in; then memory, reads, shards."""
    label = min(20, max([8, *(cell_len(row.label) for row in rows)]) + 1)
    pid = max([4, *(cell_len(_pid(row)) for row in rows)]) + 1
    node = min(14, max(cell_len(row.node) for row in rows) + 1) if any(row.node for row in rows) else 0
    left = width - 2 - label - node - pid - 10 - 6 - 19
    rss = 10 if left >= 10 + 20 else 0
    read = 12 if left - rss >= 12 + 20 else 0
    has_shards = any(row.shards is not None for row in rows)
    shards = 9 if has_shards and left - rss - read >= 9 + 24 else 0
    return Layout(label, pid, 10, 6, rss, read, 19, shards, max(0, left - rss - read - shards), node)


def header_line(layout: Layout) -> Line:
    """Column names."""
    return (
        ("  ", ""),
        cell("rank", layout.label, "dim"),
        cell("node", layout.node, "dim"),
        cell("pid", layout.pid, "dim"),
        cell("state", layout.state, "dim"),
        cell("cpu ", layout.cpu, "dim", "right"),
        cell("last activity", layout.activity, "dim"),
        cell("memory ", layout.rss, "dim", "right"),
        cell("reads  ", layout.read, "dim", "right"),
        cell("shards ", layout.shards, "dim", "right"),
        cell("blocked in", layout.blocked, "dim"),
    )


def row_line(row: WorkerRow, layout: Layout, width: int) -> Line:
    """One process, or several that look the same."""
    label_style = "odd" if row.odd else ""
    line: Line = (
        (" ", ""),
        ("!" if row.odd else " ", "odd"),
        cell(crop_text(row.label, layout.label - 1), layout.label, label_style),
        cell(short_name(row.node, layout.node - 1), layout.node, "odd" if row.odd else "dim"),
        cell(_pid(row), layout.pid, "dim"),
        cell(crop_text(row.state, layout.state - 1), layout.state, row.state_style),
        cell(percent(row.cpu) + " ", layout.cpu, "" if (row.cpu or 0) >= 5 else "dim", "right"),
        cell(activity_words(row), layout.activity - 1, row.activity_style),
        (" ", ""),
    )
    line = (
        *line,
        cell(size(row.rss) + " ", layout.rss, "dim", "right"),
        cell(
            (rate(row.read) if row.read is not None else "?") + "  ",
            layout.read,
            "ok" if row.read else "dim",
            "right",
        ),
        cell("" if row.shards is None else f"{row.shards} ", layout.shards, "dim", "right"),
    )
    notes = f"compiles: {row.compilers}  " if row.compilers else ""
    if layout.blocked:
        line = (
            *line,
            cell(notes + shorten(row.blocked, layout.blocked - cell_len(notes)), layout.blocked, row.blocked_style),
        )
    return tuple(span for span in line if span[0])


def shorten(blocked: str, width: int) -> str:
    """A long path loses its beginning, not its end: "read …del-00064-of-00064.safetensors". Without a path
    the words before the details stay."""
    if cell_len(blocked) <= width:
        return blocked
    verb, slash, path = blocked.partition(" /")
    words = blocked.partition(": ")[0]
    if not slash:
        return words if " " in words else blocked
    if cell_len(verb) + 8 > width or not blocked.isascii():
        return blocked
    return f"{verb} …{path[-(width - len(verb) - 2) :]}"


def activity_words(row: WorkerRow) -> str:
    """ "bytes 2s ago"; "none for 8m30s" when nothing moved since the watch began."""
    if row.activity_s is None:
        return "?"
    if not row.activity:
        return f"none for {age(row.activity_s)}"
    return f"{row.activity} {ago(row.activity_s)}"


def pad(line: Line, width: int) -> Line:
    """The line filled to ``width`` cells, so that a cursor colours the whole row."""
    used = sum(cell_len(text) for text, _ in line)
    return (*line, (" " * max(0, width - used), ""))


def _pid(row: WorkerRow) -> str:
    return str(row.pids[0]) if len(row.pids) == 1 else f"×{len(row.pids)}"
