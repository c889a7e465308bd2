"""From lines to rows: equal lines of many ranks once, one row per bar, silence drawn, known noise counted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.model import LogLine
from widgets.log_text import Entry, Wanted

#: silence between two dated lines from which it is drawn
QUIET_S = 20.0
#: equal lines of other ranks fold when they come within so many lines of the first, and within so many seconds of
#: the one before
FOLD_LINES = 160
FOLD_S = 5.0
#: a traceback of more lines shows its first line and its innermost frame, the rest on request
TRACEBACK_LINES = 6

_PREFIX = re.compile(r"\[(?:\d{4}-\d\d-\d\d )?(\d\d:\d\d:\d\d)[^\]]{0,40}\] ?")
_COUNT = re.compile(r"(\d+)/(\d+)")
_BAR_NAME = re.compile(r"[\d(:|]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Row(Struct, frozen=True):
    """What one row of the log shows. ``key`` orders rows; it survives folding and filtering."""

    offset: int
    part: int  # -1: the silence before a line; 0, 1 ...: the states that one physical line holds
    kind: str  # "line" | "gap" | "noise" | "frames"
    line: LogLine
    clock: str = ""
    message: str = ""
    ranks: tuple[str, ...] = ()
    late: tuple[str, ...] = ()  # ranks that print the same further down
    similar: bool = False  # the folded lines differ in their numbers
    count: int = 1
    quiet_s: float = 0.0
    broken: bool = False  # undated output, such as a bar, came within the gap

    @property
    def key(self) -> tuple[int, int]:
        return (self.offset, self.part)


class Folding(Struct, frozen=True):
    """What is folded and what passes."""

    every_line: bool = False
    noise_shown: bool = False
    wanted: Wanted | None = None
    gaps: bool = True
    opened: frozenset[int] = frozenset()  # offsets of lines whose traceback is shown in full


class _Draft(Struct):
    offset: int
    part: int
    kind: str
    line: LogLine
    index: int
    clock: str = ""
    message: str = ""
    ranks: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    similar: bool = False
    count: int = 1
    quiet_s: float = 0.0
    broken: bool = False
    burst: int = 0
    dead: bool = False
    last_t: float | None = None  # of the last line counted here
    earlier: _Draft | None = None  # the row that shows the same of ranks that were sooner

    def row(self) -> Row:
        return Row(
            self.offset,
            self.part,
            self.kind,
            self.line,
            self.clock,
            self.message,
            tuple(self.ranks),
            tuple(self.late),
            self.similar,
            self.count,
            self.quiet_s,
            self.broken,
        )


def split_prefix(line: LogLine) -> tuple[str, str]:
    """Clock and message of a line: "[2026-11-29 16:03:29 TP0] Load ..." -> ("16:03:29", "Load ...")."""
    found = _PREFIX.match(line.text)
    if found:
        return found[1], line.text[found.end() :]
    clock = "" if line.t is None or not line.body else f"{datetime.fromtimestamp(line.t):%H:%M:%S}"
    return clock, line.text[line.body :]


def is_error(line: LogLine) -> bool:
    return line.kind == "error" or (line.level == "error" and line.kind not in ("noise", "traceback"))


def is_warning(line: LogLine) -> bool:
    return line.kind == "warning" or (line.level == "warning" and line.kind not in ("noise", "error"))


def is_milestone(line: LogLine) -> bool:
    return line.kind == "milestone" or (bool(line.milestone) and line.kind != "bar")


class Folder:
    """One pass over consecutive lines."""

    def __init__(self, folding: Folding) -> None:
        self._how = folding
        self._drafts: list[_Draft] = []
        self._groups: dict[str, _Draft] = {}
        self._bars: dict[str, _Draft] = {}
        self._noise: _Draft | None = None
        self._last_t: float | None = None
        self._undated = False
        self._burst = 0
        self._in_traceback = False

    def fold(self, entries: Iterable[Entry]) -> list[Row]:
        previous, part = -1, 0
        for index, (offset, line) in enumerate(entries):
            part = part + 1 if offset == previous else 0
            previous = offset
            line = self._in_context(line)
            if self._how.gaps:
                self._quiet(offset, line, index)
            if self._how.wanted is not None and not self._how.wanted(line):
                continue
            self._take(offset, part, line, index)
        return [draft.row() for draft in self._tidy()]

    def _in_context(self, line: LogLine) -> LogLine:
        """The quoted source between two frames belongs to the traceback; alone it cannot be told from other text."""
        if line.kind == "traceback":
            self._in_traceback = True
        elif line.t is not None or not line.text[:1].isspace():
            self._in_traceback = "Traceback (most recent" in line.text
        elif self._in_traceback and line.kind == "":
            return replace(line, kind="traceback")
        return line

    def _tidy(self) -> list[_Draft]:
        """Without what was superseded; runs of noise made one, long tracebacks cut to their ends."""
        drafts: list[_Draft] = []
        run: list[_Draft] = []
        for draft in self._drafts:
            if draft.dead:
                continue
            if draft.kind == "line" and draft.line.kind == "traceback":
                run.append(draft)
                continue
            drafts += self._cut(run)
            run = []
            if draft.kind == "noise" and drafts and drafts[-1].kind == "noise":
                drafts[-1].count += draft.count
                continue
            drafts.append(draft)
        return drafts + self._cut(run)

    def _cut(self, run: list[_Draft]) -> list[_Draft]:
        how = self._how
        if len(run) <= TRACEBACK_LINES or how.every_line or how.wanted is not None:
            return run
        if any(draft.offset in how.opened for draft in run):
            return run
        innermost = next((n for n in range(2, 6) if run[-n].message.lstrip().startswith("File ")), 2)
        first, count = run[1], len(run) - 1 - innermost
        if count < 2:
            return run
        frames = _Draft(first.offset, first.part, "frames", first.line, first.index, count=count)
        return [run[0], frames, *run[-innermost:]]

    def _quiet(self, offset: int, line: LogLine, index: int) -> None:
        if line.t is None:
            self._undated = True
            return
        if self._last_t is not None and line.t - self._last_t >= QUIET_S:
            self._burst += 1
            self._noise = None
            self._drafts.append(
                _Draft(offset, -1, "gap", line, index, quiet_s=line.t - self._last_t, broken=self._undated)
            )
        self._last_t = line.t if self._last_t is None else max(self._last_t, line.t)
        self._undated = False

    def _take(self, offset: int, part: int, line: LogLine, index: int) -> None:
        how = self._how
        if line.kind in ("noise", "access") and not how.noise_shown and not how.every_line:
            if self._noise is not None:
                self._noise.count += 1
                return
            self._noise = _Draft(offset, part, "noise", line, index)
            self._drafts.append(self._noise)
            return
        clock, message = split_prefix(line)
        if line.body and not message.strip() and not how.every_line:
            return  # a prefix without words: blank lines of a banner
        draft = _Draft(offset, part, "line", line, index, clock, message, burst=self._burst)
        if line.rank:
            draft.ranks.append(line.rank)
        if not how.every_line:
            if line.kind == "bar":
                self._bar(draft)
            elif line.rank and self._joins(draft):
                return
        self._noise = None
        self._drafts.append(draft)

    def _bar(self, draft: _Draft) -> None:
        """Of each bar only the newest state lives. A bar without a name yet ("0%| | 0/36") is named by its total."""
        found = _COUNT.search(draft.message)
        if found is None:
            return
        stem = _BAR_NAME.split(draft.message, maxsplit=1)[0].strip()
        node = draft.line.node
        name, nameless = f"{node}:{stem}/{found[2]}", f"{node}:/{found[2]}"
        older = self._bars.get(name) or self._bars.pop(nameless, None)
        if older is not None:
            before = _COUNT.search(older.message)
            if before is not None and int(found[1]) >= int(before[1]):
                older.dead = True
        self._bars[name] = draft

    def _joins(self, draft: _Draft) -> bool:
        """Whether the same line of another rank is shown already; then it is counted there."""
        rank, line = draft.line.rank, draft.line
        key = draft.message
        if is_milestone(line) and line.kind != "bar":
            key = _NUMBER.sub("0", key)
        lead = self._groups.get(key)
        if lead is not None and rank not in lead.ranks:
            if self._is_near(lead, draft):
                lead.ranks.append(rank)
                lead.count += 1
                lead.similar = lead.similar or draft.message != lead.message
                lead.last_t = line.t if line.t is not None else lead.last_t
                if lead.earlier is not None:
                    lead.earlier.late.append(rank)
                return True
            lead.late.append(rank)
            draft.earlier = lead
        draft.last_t = line.t
        self._groups[key] = draft
        return False

    def _is_near(self, lead: _Draft, draft: _Draft) -> bool:
        if draft.index - lead.index > FOLD_LINES or lead.burst != draft.burst:
            return False
        if lead.last_t is None or draft.line.t is None:
            return True
        return abs(draft.line.t - lead.last_t) <= FOLD_S
