"""Panel 3: every process of the server, what it is blocked in, and its last activity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual import events
from textual.message import Message

from sgmon.model import Snapshot
from sgmon.text import clean
from sgmon.units import percent
from widgets.line import Line, restyle
from widgets.panel import Panel
from widgets.phases import has_ended
from widgets.worker_columns import activity_words, header_line, pad, plan, row_line
from widgets.worker_rows import RowKey, WorkerRow, fold_rows, log_sentence, worker_rows


class WorkersView(NamedTuple):
    """What the workers panel shows."""

    rows: tuple[WorkerRow, ...]
    helpers: tuple[WorkerRow, ...]
    log_words: str
    log_style: str
    only_odd: bool
    has_ended: bool
    nodes: tuple[str, ...] = ()


class WorkersPanel(Panel[WorkersView]):
    """One row per process; equal ones fold when there is no room. A cursor picks the one to dump."""

    NUMBER = "3"
    TITLE = "workers"
    PROBE = "procs"
    READS = ("server", "procs", "clocks", "ranks", "verdict", "nodes")
    HINTS = (("↵", "detail"), ("d", "stack"), ("D", "all stacks"), ("x", "only odd"))

    class Chosen(Message):
        """Enter or a second click on a row."""

        def __init__(self, pid: int, node: str = "") -> None:
            super().__init__()
            self.pid, self.node = pid, node

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor: RowKey | None = None
        self.only_odd = False
        self._shown: list[WorkerRow] = []
        self._asleep: dict[RowKey, WorkerRow] = {}  # the last row that was no moment awake

    def select(self, snapshot: Snapshot) -> WorkersView:
        view = select(snapshot, self.only_odd)
        rows = tuple(self._steady(row) for row in view.rows)
        keys = {row.key for row in rows}
        self._asleep = {key: row for key, row in self._asleep.items() if key in keys}
        return view._replace(rows=rows)

    def _steady(self, row: WorkerRow) -> WorkerRow:
        """A sleeper that wakes for a moment keeps its place, so that a quiet screen stays still."""
        before = self._asleep.get(row.key)
        if row.is_awake_for_a_moment and before is not None:
            return row._replace(
                state=before.state,
                state_style=before.state_style,
                blocked=before.blocked,
                blocked_style=before.blocked_style,
            )
        if row.state == "sleep":
            self._asleep[row.key] = row
        return row

    def state_of_rows(self) -> object:
        return self.cursor

    def heading(self, view: WorkersView) -> Line:
        return ((view.log_words, view.log_style),) if view.log_words else ()

    def corner(self, view: WorkersView) -> Line:
        return ((" only what differs: x ", "badge-info"),) if view.only_odd else ()

    def stale_after_s(self) -> float:
        return 10.0

    def probe_label(self) -> str:
        return "/proc"

    def paint(self, view: WorkersView, width: int, height: int) -> Sequence[Line]:
        if not view.rows:
            self._shown = []
            words = "no process is left" if view.has_ended else "no process seen yet"
            words = "nothing differs between the ranks" if view.only_odd else words
            return [((f" {words}", "dim"),)]
        rows = list(view.rows)
        self.fixed_rows = 1 if height >= 4 else 0
        room = height - self.fixed_rows
        if len(rows) > room:
            rows = fold_rows(rows)
            if view.nodes:  # of hundreds of ranks those that differ come first
                rows.sort(key=lambda row: not row.odd)
        if len(rows) + len(view.helpers) <= room:
            rows += view.helpers
        self._shown = rows
        index = self._cursor_index()
        layout = plan(rows, width)
        lines = [row_line(row, layout, width) for row in rows]
        if self.has_focus:
            lines[index] = restyle((("▸", "key"), *pad(lines[index][1:], width - 1)), "cursor")
        self.top = max(index - room + 1, min(self.top, index))
        return [header_line(layout), *lines] if self.fixed_rows else lines

    def wanted_rows(self, view: WorkersView, width: int, room: int) -> int:
        rows = len(view.rows) if 1 + len(view.rows) <= room else len(fold_rows(view.rows))
        helpers = len(view.helpers) if 1 + rows + len(view.helpers) <= room else 0
        return 1 + rows + helpers

    # the cursor

    @property
    def selected_pids(self) -> tuple[int, ...]:
        """Processes of the row under the cursor; a folded row gives all of its ranks."""
        return () if (row := self._chosen_row()) is None else row.pids

    @property
    def selected_node(self) -> str:
        """The node of that row; "" on a single machine, or where the row is of several."""
        row = self._chosen_row()
        return "" if row is None or row.node not in self._node_names else row.node

    @property
    def selected_label(self) -> str:
        """The name of that row."""
        return "" if (row := self._chosen_row()) is None else row.label

    @property
    def selected_text(self) -> str:
        """That row in words."""
        if (row := self._chosen_row()) is None:
            return ""
        pids = " ".join(str(pid) for pid in row.pids)
        where = f" on {row.node}" if row.node else ""
        facts = f"{row.state}, cpu {percent(row.cpu)}, last activity {activity_words(row)}, blocked in {row.blocked}"
        return f"{row.label} pid {pids}{where}: {facts}"

    @property
    def _node_names(self) -> tuple[str, ...]:
        return () if self.snapshot is None else tuple(clean(view.name, 24) for view in self.snapshot.nodes)

    def _chosen_row(self) -> WorkerRow | None:
        """The row under the cursor. A hidden panel paints nothing: its rows come from the newest snapshot."""
        if not self.is_on_screen and self.snapshot is not None:
            self._shown = list(self.select(self.snapshot).rows)
        return self._shown[self._cursor_index()] if self._shown else None

    def _cursor_index(self) -> int:
        """Where the cursor is. Untouched it is on the first odd rank: the most telling one."""
        for index, row in enumerate(self._shown):
            if self.cursor is not None and self.cursor[1] in row.pids and self.cursor[0] in (row.node, ""):
                return index
        odd = next((i for i, row in enumerate(self._shown) if row.odd), None)
        if odd is not None:
            return odd
        return next((i for i, row in enumerate(self._shown) if row.is_rank), 0)

    def action_move(self, rows: int) -> None:
        if not self._shown:
            return
        index = max(0, min(len(self._shown) - 1, self._cursor_index() + rows))
        self.cursor = self._shown[index].key
        self.update_view()

    def choose_pid(self, pid: int, node: str = "") -> None:
        """Put the cursor on the row of this process."""
        self.cursor = node, pid
        self.update_view()

    def toggle_only_odd(self) -> None:
        """Show only ranks that differ from the others, or all again."""
        self.only_odd = not self.only_odd
        self.view = None
        self.update_view()

    def key_enter(self) -> None:
        pids = self.selected_pids
        if pids:
            self.post_message(self.Chosen(pids[0], self.selected_node))

    def on_click(self, event: events.Click) -> None:
        index = event.y - 1 - self.fixed_rows + self.top
        if 0 <= index < len(self._shown) and not self.screen.selections:
            if event.chain > 1:
                self.key_enter()
            else:
                self.choose_pid(self._shown[index].pids[0], self._shown[index].node)


def select(snapshot: Snapshot, only_odd: bool = False) -> WorkersView:
    """Rows from a snapshot: launcher, ranks, the rest; helpers apart."""
    rows = worker_rows(snapshot)
    main = tuple(row for row in rows if not row.is_helper)
    words, style = log_sentence(snapshot)
    if only_odd:
        ranks = [row for row in main if row.is_rank]
        usual = max((row.fold_key for row in ranks), key=[row.fold_key for row in ranks].count, default=None)
        main = tuple(row for row in main if row.odd or (row.is_rank and row.fold_key != usual))
    if snapshot.verdict.state == "ended":  # nothing is wrong: a process that is gone is no alarm
        main = tuple(row._replace(state_style="dim", blocked_style="dim") for row in main)
    helpers = () if only_odd else tuple(row for row in rows if row.is_helper)
    nodes = tuple(clean(view.name, 24) for view in snapshot.nodes)
    return WorkersView(main, helpers, words, style, only_odd, has_ended(snapshot), nodes)
