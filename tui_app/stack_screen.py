"""``d`` and ``D``: stack dumps as they arrive, and where the ranks differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType

from sgmon.model import Snapshot, StackDump, StackView
from sgmon.text import clean
from sgmon.units import lasting, plural
from tui_app.lines_screen import LinesScreen
from tui_app.stack_history import since_before
from widgets.line import Line
from widgets.stack_lines import StackOptions, class_lines, dump_lines, newest_dumps

_NATIVE_COST = "native frames stop each process for 0.4 to 3.4 s while it is read: press n again to do it"


class Answer(NamedTuple):
    """What the page shows of its request: the rows change with it alone. asked: False in a recording."""

    dumps: tuple[StackDump, ...]
    view: StackView
    done: bool
    asked: bool
    warned: bool
    options: StackOptions


class StackScreen(LinesScreen):
    """Asks for dumps when opened. One process: its threads. Several: which ranks are where, the outliers first."""

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

    def __init__(self, pids: tuple[int, ...] | None, label: str, node: str = "") -> None:
        super().__init__()
        self.node = node  # whose pids these are, where there are several
        self.pids = None if pids is None else frozenset(pids)
        self.label = label
        self.options = StackOptions()
        self.native = False
        self.warned = False
        self.asked_t = 0.0
        self.request: int | None = None  # None: the engine cannot be asked

    def on_mount(self) -> None:
        self._ask()

    @property
    def is_one(self) -> bool:
        return self.pids is not None and len(self.pids) == 1

    def _ask(self) -> None:
        latest = self.session.latest
        self.asked_t = latest.t
        samples = 1 if self.is_one or self.native else 3
        pids = None if self.pids is None else tuple(self.pids)
        why = "key d" if self.is_one else "key D"
        self.request = self.session.engine.request_stacks(pids, samples, self.native, why)
        self.receive(latest)

    # what arrived

    def select(self, snapshot: Snapshot) -> Answer:
        """The dumps of our request; where none can be asked for (a recording), those of its newest one."""
        snapshot = snapshot if self.pids is None or not self.node else snapshot.of_node(self.node)
        newest = snapshot.stacks_request
        number = self.request if self.request is not None or newest is None else newest.request
        dumps = tuple(
            dump
            for dump in snapshot.stacks
            if dump.request == number and (self.pids is None or dump.pid in self.pids)
        )
        done = newest is not None and number is not None and newest.request >= number
        done = done and newest is not None and (newest.request != number or newest.done)
        view = next((view for view in snapshot.stack_views if view.request == number), StackView(number or 0))
        options = self.options._replace(family=snapshot.family)
        return Answer(dumps, view, done, self.request is not None, self.warned and not self.native, options)

    def title_line(self, snapshot: Snapshot) -> Line:
        answer = self.select(snapshot)
        newest = newest_dumps(answer.dumps)
        line: Line = ((f" stack of {clean(self.label, 40)} ", "title-focus"), ("  ", ""))
        if not answer.asked:
            taken = f", taken {lasting(snapshot.t - newest[0].t)} ago" if newest else ""
            return (*line, ("as recorded", "info"), (taken, "dim"))
        if not answer.done:
            took = "  (about 2 s each)" if self.native else ""
            native = " with native frames" if self.native else ""
            words = f"asking{native} since {lasting(snapshot.t - self.asked_t)}{took}"
            return (*line, (words, "info"), (f", {plural(len(newest), 'answer')} so far" if newest else "", "dim"))
        failed = sum(1 for dump in newest if dump.error)
        line = (*line, (f"{len(newest)} process{'' if len(newest) == 1 else 'es'}", ""))
        line = (*line, (f", {failed} gave no stack", "bad")) if failed else line
        taken = f", taken {lasting(snapshot.t - newest[0].t)} ago" if newest else ""
        return (*line, (f"{taken}, {'native' if self.native else 'the server was not paused'}", "dim"))

    def page_lines(self, snapshot: Snapshot, width: int) -> Sequence[Line]:
        answer = self.select(snapshot)
        options = answer.options._replace(width=width)
        rows: list[Line] = []
        if answer.warned:
            rows += [((f" {_NATIVE_COST}", "warn"),), ()]
        if not answer.dumps:
            return [*rows, ((_nothing(answer), "dim"),)]
        newest = newest_dumps(answer.dumps)
        rows += since_before(answer.view, self.pids, options.family)
        if self.is_one:
            return [*rows, *(row for dump in newest for row in dump_lines(dump, options))]
        rows += class_lines(answer.view.classes, options)
        failed = [dump for dump in newest if dump.error]
        same = len({dump.error for dump in failed}) == 1
        for dump in failed[:1] if same else failed:
            rows += dump_lines(dump, options)
        if len(failed) > 1 and same:
            rows.insert(len(rows) - 1, ((f"   the same for {len(failed)} processes", "dim"),))
        if options.threads:
            rows += [row for dump in newest if not dump.error for row in dump_lines(dump, options)]
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


def _nothing(answer: Answer) -> str:
    if not answer.asked:
        return " this recording holds no stacks up to here"
    return " nothing came back: no process with this pid any more?" if answer.done else " waiting for py-spy ..."
