"""``d`` and ``D``: stack dumps as they arrive, and where the ranks differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from sgmon.analyse.stacks.merge import merge
from sgmon.analyse.stacks.rules import rules_of
from sgmon.model import Snapshot, StackDump
from sgmon.text import clean
from sgmon.units import age, plural
from tui_app.lines_screen import LinesScreen
from tui_app.stack_history import since_before
from widgets.line import Line
from widgets.stack_lines import StackOptions, class_lines, dump_lines, newest_dumps

_NATIVE_COST = "native frames stop each process for 0.1 to 2 s while it is read: press n again to do it"


class StackScreen(LinesScreen):
    """Asks for dumps when opened. One process: its threads. Several: who stands where, the odd ones first."""

    STEM = "stacks"
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("r", "repeat"),
        ("n", "native"),
        ("t", "threads"),
        ("c", "copy"),
        ("s", "save"),
    )
    ALWAYS: ClassVar[tuple[tuple[str, str], ...]] = (("?", "help"), ("q", "back"))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r,d,D,b", "repeat", "dump again, compared with the one before", id="stacks.repeat"),
        Binding("n", "native", "with C++ frames (stops each process while it is read)", id="stacks.native"),
        Binding("t", "threads", "other threads too, or the main one only", id="stacks.threads"),
    ]

    def __init__(self, pids: tuple[int, ...] | None, label: str) -> None:
        super().__init__()
        self.pids = pids
        self.label = label
        self.options = StackOptions()
        self.native = False
        self.warned = False
        self.asked_t = 0.0
        self._request_before: int | None = None

    def on_mount(self) -> None:
        self._ask()

    @property
    def is_one(self) -> bool:
        return self.pids is not None and len(self.pids) == 1

    def _ask(self) -> None:
        latest = self.session.latest
        request = latest.stacks_request
        self._request_before = None if request is None else request.request
        self.asked_t = latest.t
        samples = 1 if self.is_one or self.native else 3
        self.session.engine.request_stacks(self.pids, samples, self.native, "key d" if self.is_one else "key D")
        self.receive(latest)

    # what arrived

    def _dumps(self, snapshot: Snapshot) -> tuple[tuple[StackDump, ...], bool]:
        """Dumps of our request, and whether it is done."""
        request = snapshot.stacks_request
        if request is None or request.request == self._request_before:
            return (), False
        wanted = None if self.pids is None else set(self.pids)
        taken = tuple(d for d in request.dumps if wanted is None or d.pid in wanted)
        return taken, request.done

    def title_line(self, snapshot: Snapshot) -> Line:
        dumps, done = self._dumps(snapshot)
        line: Line = ((f" stack of {clean(self.label, 40)} ", "title-focus"), ("  ", ""))
        if not done:
            took = "  (about 2 s each)" if self.native else ""
            words = (
                f"asking{' with native frames' if self.native else ''} since {age(snapshot.t - self.asked_t)}{took}"
            )
            line = (
                *line,
                (words, "info"),
                (f", {plural(len(newest_dumps(dumps)), 'answer')} received" if dumps else "", "dim"),
            )
        else:
            failed = sum(1 for dump in newest_dumps(dumps) if dump.error)
            line = (*line, (plural(len(newest_dumps(dumps)), "process").replace("processs", "processes"), ""))
            line = (*line, (f", {failed} gave no stack", "bad")) if failed else line
            line = (*line, (", the server was not paused" if not self.native else ", native", "dim"))
        return line

    def page_lines(self, snapshot: Snapshot, width: int) -> Sequence[Line]:
        self.options = self.options._replace(width=width)
        rows: list[Line] = []
        if self.warned and not self.native:
            rows += [((f" {_NATIVE_COST}", "warn"),), ()]
        dumps, done = self._dumps(snapshot)
        if not dumps:
            words = (
                " waiting for py-spy ..." if not done else " nothing came back: no process with this pid any more?"
            )
            return [*rows, ((words, "dim"),)]
        newest = newest_dumps(dumps)
        rows += since_before(snapshot, dumps)
        if self.is_one:
            for dump in newest:
                rows += dump_lines(dump, snapshot.t, self.options)
            return rows
        good = [dump for dump in dumps if not dump.error]
        if good:
            rows += class_lines(merge(good, rules_of(snapshot.server)), width)
        failed = [dump for dump in newest if dump.error]
        for dump in failed[:1] if len({d.error for d in failed}) == 1 else failed:
            rows += dump_lines(dump, snapshot.t, self.options)
        if len(failed) > 1 and len({d.error for d in failed}) == 1:
            rows.insert(len(rows) - 1, ((f"   the same for {len(failed)} processes", "dim"),))
        if self.options.threads:
            for dump in (d for d in newest if not d.error):
                rows += dump_lines(dump, snapshot.t, self.options)
        return rows

    # keys

    def action_repeat(self) -> None:
        self._ask()

    def action_native(self) -> None:
        if self.native:
            self.native = self.warned = False
        elif self.warned:
            self.native = True
        else:
            self.warned = True
            self.receive(self.session.latest)
            return
        self._ask()

    def action_threads(self) -> None:
        self.options = self.options._replace(threads=not self.options.threads)
        self.receive(self.session.latest)
