"""The top of the screen: what is the matter, what says so, what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from textual import events
from textual.message import Message

from sgmon.text import clean
from sgmon.units import duration, percent, plural, rough, state_age
from widgets.ages import ago
from widgets.line import Line, crop, join_ends, width_of, wrap
from widgets.painted import Painted
from widgets.states import signal_label, state_style

if TYPE_CHECKING:
    from sgmon.model import Evidence, NextStep, Snapshot, Verdict, VerdictChange


#: facts that stand before the second step is shown
FACTS_FIRST = 2
_REPLAY = "REPLAY "
#: states of a start that goes on
_GOES_ON = frozenset({"progressing", "slow", "waiting-by-design", "will-fail", "unknown"})


class VerdictView(NamedTuple):
    """What the bar shows."""

    verdict: Verdict
    for_s: int
    history: tuple[tuple[str, int], ...]  # state, how long ago it began
    servers: int
    note: str
    eta: str = ""
    warnings: int = 0  # doubts about a start that goes on


class VerdictBar(Painted):
    """Row 0 is always the verdict in words. Then evidence, the next command, and the way here."""

    class Pressed(Message):
        """A click. key: of the step that was clicked on, "" elsewhere."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.snapshot: Snapshot | None = None
        self.note = ""
        self.opening = ""
        self._painted: tuple[object, ...] = ()

    def receive(self, snapshot: Snapshot) -> None:
        """A new snapshot."""
        self.snapshot = snapshot
        self.update_view()

    def set_opening(self, words: str) -> None:
        """What stands here until the first snapshot."""
        self.opening = words
        self.update_view()

    def set_note(self, note: str) -> None:
        """Words of the application itself ("view frozen, 12s behind"), loud at the right end."""
        self.note = note
        self.update_view()

    def update_view(self) -> None:
        """Paint if anything changed."""
        if not self.size.width:
            return
        if self.snapshot is None:
            look = state_style("waiting")
            self.show_lines([((f" {look.glyph} {look.word} ", look.badge), (" ", ""), (self.opening, "strong"))])
            return
        view = select(self.snapshot, self.note)
        state = (view, self.size)
        if state != self._painted:
            self._painted = state
            self.show_lines(paint(view, self.size.width, self.size.height))

    def wanted_rows(self, width: int) -> tuple[int, int]:
        """(rows for the headline, a fact and the first step; rows for everything)."""
        return (2, 2) if self.snapshot is None else wanted(select(self.snapshot, self.note), width)

    def on_resize(self, event: events.Resize) -> None:
        self._painted = ()
        self.update_view()

    def on_click(self, event: events.Click) -> None:
        if not self.screen.selections and self.snapshot is not None:  # the end of a drag is no click
            view = select(self.snapshot, self.note)
            self.post_message(self.Pressed(step_key_at(view, self.size.width, self.size.height, event.y)))


def select(snapshot: Snapshot, note: str = "") -> VerdictView:
    """The verdict and its age in whole seconds."""
    verdict = snapshot.verdict
    return VerdictView(
        verdict=verdict,
        for_s=rough(snapshot.t - verdict.since_t) or max(0, int(snapshot.t - verdict.since_t)),
        history=_history(snapshot),
        servers=len(snapshot.candidates),
        eta=eta_words(snapshot),
        warnings=sum(one.level == "warning" for one in snapshot.forecasts) if verdict.state in _GOES_ON else 0,
        note=note or (f"{_REPLAY}{clean(snapshot.replay, 60)}" if snapshot.replay else ""),
    )


def eta_words(snapshot: Snapshot) -> str:
    """ "~1m40s to ready", "after 34s, usually 33s"; "" where there is no number."""
    eta = snapshot.eta
    if eta.remains_s is not None:
        return f"~{duration(rough(eta.remains_s))} to ready"
    if eta.took_s is None:
        return ""
    usually = "" if eta.usual_s is None else f", usually {duration(eta.usual_s)}"
    return f"after {duration(eta.took_s)}{usually}"


def _history(snapshot: Snapshot) -> tuple[tuple[str, int], ...]:
    """The last turns. The newest has the age that the headline says, where that is the age of the state."""
    turns = [(change.state, rough(snapshot.t - change.t)) for change in _turns(snapshot.verdicts)[-6:]]
    verdict = snapshot.verdict
    if turns and turns[-1][0] == verdict.state and verdict.state not in ("suspect", "stalled"):
        turns[-1] = verdict.state, rough(snapshot.t - verdict.since_t)
    return tuple(turns)


def paint(view: VerdictView, width: int, height: int) -> list[Line]:
    """``height`` rows: the verdict, what says so, what to do next, and (with rows to spare) how it came to this.

    The first step stands whole whatever the height; then come the facts, the other steps and the history.
    """
    head, steps, history = _parts(view, width, height)
    tail = [row for rows in steps for row in rows] + history
    rows = [
        *head,
        *flow(fact_lines(view), width, height - len(head) - len(tail), len(view.verdict.next) - len(steps)),
    ]
    rows += [()] * (height - len(tail) - len(rows))
    return [*rows, *tail][:height]


def step_key_at(view: VerdictView, width: int, height: int, y: int) -> str:
    """The key of the step that ``paint`` shows in row ``y``; "" where there is none."""
    _, steps, history = _parts(view, width, height)
    row = height - len(history) - sum(map(len, steps))
    for step, rows in zip(view.verdict.next, steps, strict=False):
        if row <= y < row + len(rows):
            return step.key
        row += len(rows)
    return ""


def _parts(view: VerdictView, width: int, height: int) -> tuple[list[Line], list[list[Line]], list[Line]]:
    """(rows of the headline, rows of each step that is shown, the row of the history): what there is room for."""
    head = headline_rows(view, width)
    facts = fact_lines(view)
    steps = [step_rows(step, index, width) for index, step in enumerate(view.verdict.next)]
    room = height - len(head)
    while len(head) > 1 and room < min(1, len(facts)) + (len(steps[0]) if steps else 0):
        head = shortened(head, width)
        room = height - len(head)
    shown = 1 if steps else 0
    while shown < len(steps) and room >= min(FACTS_FIRST, len(facts)) + sum(map(len, steps[: shown + 1])):
        shown += 1
    spare = room - sum(map(len, steps[:shown]))
    has_history = len(view.history) > 1 and spare > sum(len(wrap(line, width, 10)) for line in facts)
    return head, steps[:shown], [history_row(view, width)] if has_history else []


def wanted(view: VerdictView, width: int) -> tuple[int, int]:
    """(rows for the headline, a fact and the first step; rows for everything)."""
    head = len(headline_rows(view, width))
    facts = fact_lines(view)
    steps = [len(step_rows(step, index, width)) for index, step in enumerate(view.verdict.next)]
    least = head + min(1, len(facts)) + (steps[0] if steps else 0)
    history = 1 if len(view.history) > 1 else 0
    return least, head + sum(len(wrap(line, width, 10)) for line in facts) + sum(steps) + history


def fact_lines(view: VerdictView) -> list[Line]:
    """The evidence, then what could not be seen."""
    lines = [evidence_line(item) for item in view.verdict.evidence]
    return lines + [missing_line(item.signal, item.why, item.remedy) for item in view.verdict.missing]


def shortened(head: Sequence[Line], width: int) -> list[Line]:
    """One row less of the headline; what was cut shows."""
    rows = list(head[:-1])
    rows[-1] = (*rows[-1], ("…", "dim")) if width_of(rows[-1]) < width else crop((*rows[-1], ("…", "dim")), width)
    return rows


def headline_rows(view: VerdictView, width: int) -> list[Line]:
    """The badge, the headline, how long; a long headline goes on below."""
    verdict = view.verdict
    look = state_style(verdict.state)
    badge = (f" {look.glyph} {look.word} ", look.badge)
    right: list[tuple[str, str]] = []
    sure = f"{percent(verdict.confidence * 100)} sure, " if 0 < verdict.confidence < 0.85 else ""
    right.append((f" {sure}{state_age(verdict.state, view.for_s)} ", "dim"))
    if view.eta:
        right = [(f" {view.eta},", "strong"), *right]
    if view.warnings:
        right = [(f" {plural(view.warnings, 'warning')},", "warn"), *right]
    if view.note:
        note = view.note if width >= 110 else _short_note(view.note, width - width_of((badge,)) - 12)
        right = [(f" {note} ", "badge-warn")]
    headline = clean(verdict.headline, 400) or "no words for this state"
    if width - width_of(right) < width_of((badge,)) + 10:
        right = []
    room = width - width_of(right) - (1 if right else 0)  # join_ends keeps a cell between the two
    indent = width_of((badge,)) + 1 if width >= 110 else 2
    rows = wrap((badge, (" ", ""), (headline, "strong")), width, indent, first=room)
    rows[0] = join_ends(rows[0], tuple(right), width)
    if len(rows) > 3:
        rows = [*rows[:2], (*rows[2], ("…", "dim"))]
    return rows


def _short_note(note: str, room: int) -> str:
    """Without the name of the file that is played, where that fits in ``room`` cells; else its first two words."""
    shorter = note.rpartition(" ")[0]
    return shorter if note.startswith(_REPLAY) and len(shorter) <= room else " ".join(note.split()[:2])


def evidence_line(item: Evidence) -> Line:
    """ "  log  64/64 shards read, silent since 8m30s"."""
    words = clean(item.text, 400)
    rank = f"{item.rank} " if item.rank and item.rank not in words else ""
    return ((f" {signal_label(item.signal, 8):<8} ", "info"), (rank, "odd"), (words, ""))


def missing_line(signal: str, why: str, remedy: str) -> Line:
    """ "  gpu not seen: no NVML  (fix: ...)"."""
    line: Line = ((f" {signal_label(signal, 8):<8} ", "dim"), (f"not seen: {clean(why, 200)}", "dim"))
    return (*line, (f"; fix: {clean(remedy, 200)}", "dim")) if remedy else line


def flow(lines: Sequence[Line], width: int, room: int, more_steps: int = 0) -> list[Line]:
    """Lines into ``room`` rows: each gets one row, and long ones more while rows are to spare; the first, which says
    what is wrong, two before the third line has one. What is left out, and ``more_steps``, is counted in the last
    row."""
    if room <= 0 or not lines:
        return []
    if 3 <= room <= len(lines) and len(first := wrap(lines[0], width, indent=10)) > 1:
        whole = [first[0], first[1] if len(first) == 2 else crop((*first[1], ("…", "dim")), width)]
        return [*whole, *flow(lines[1:], width, room - 2, more_steps)]
    hidden = max(0, len(lines) - room)
    left_out = [f"+{hidden} more"] if hidden else []
    left_out += [f"+{plural(more_steps, 'step')}"] if more_steps else []
    hint: Line = ((f" {', '.join(left_out)}: v", "dim"),) if left_out else ()
    spare = room - len(lines)
    rows: list[Line] = []
    for line in lines[:room]:
        wrapped = wrap(line, width, indent=10)
        take = max(1, min(len(wrapped), 1 + spare))
        spare -= take - 1
        rows += [crop(line, width)] if take == 1 else wrapped[:take]
    if hint:
        rows[-1] = join_ends(lines[room - 1] if hidden else rows[-1], hint, width)
    return rows


def step_rows(step: NextStep, index: int, width: int) -> list[Line]:
    """A step, whole: the key that does it, the words, the command; on a row of its own where it does not fit."""
    lead: Line = ((" next     " if index == 0 else " or       ", "key"),)
    if step.key:
        lead = (*lead, (step.key, "key"), (": ", "dim"))
    line: Line = (*lead, (clean(step.text, 300), "strong" if index == 0 else ""))
    command = clean(step.command, 400)
    if not command or (step.key and width < 80):  # the key does the same
        return wrap(line, width, indent=10)
    whole: Line = (*line, ("   $ ", "dim"), (command, "accent"))
    if width_of(whole) <= width:
        return [whole]
    return [*wrap(line, width, indent=10), *wrap((("        $ ", "dim"), (command, "accent")), width, indent=10)]


def history_row(view: VerdictView, width: int) -> Line:
    """The last changes of the verdict, oldest first: "12m03s ago WAITING → 3m12s ago SUSPECT → ..."."""
    items: list[Line] = []
    for state, began_s in view.history:
        look = state_style(state)
        items.append(((f"{look.glyph} {look.word.lower()}", look.text_style), (f" {ago(began_s)}", "dim")))
    while items:
        line: Line = ((" history ", "dim"),)
        for index, item in enumerate(items):
            line = (*line, (" → ", "dim"), *item) if index else (*line, *item)
        if width_of(line) <= width or len(items) == 1:
            return crop(line, width)
        items.pop(0)
    return ()


def _turns(history: Sequence[VerdictChange]) -> list[VerdictChange]:
    """Changes of the state; a new headline in the same state is no turn."""
    turns: list[VerdictChange] = []
    for change in history:
        if not turns or turns[-1].state != change.state:
            turns.append(change)
    return turns
