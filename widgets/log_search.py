"""What is looked for in the log: pattern, rank, kinds of lines. The looking itself is done in other threads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from sgmon.model import LogLine
from sgmon.units import plural
from widgets.line import Line, crop
from widgets.log_filter import LogFilter, Pattern, parse
from widgets.log_rows import Folding, is_error, is_milestone, is_warning
from widgets.log_text import BlockSurvey, Hint, LineCount, LineSearch, LogText, Wanted
from widgets.log_window import Window

KINDS: dict[str, Callable[[LogLine], bool]] = {
    "error": is_error,
    "warning": is_warning,
    "milestone": is_milestone,
}
Answer = Callable[[LineSearch, "int | None", str, bool], None]


class LogSearch:
    """The search and the filter of a log panel."""

    def __init__(self, text: LogText, window: Window, progress: Callable[[], object], answer: Answer) -> None:
        self._text = text
        self._window = window
        self._progress = progress
        self._answer = answer
        self.pattern: Pattern | None = None
        self.only_hits = False
        self.rank = ""
        self.node = ""
        self.noise_shown = False
        self.every_line = False
        self._search: LineSearch | None = None
        self._may_wrap = False
        self._count: LineCount | None = None
        self._hits: Sequence[int] | None = None  # offsets of all hits; None: not counted yet
        self._counted: object = None  # what the count is of
        self._survey: BlockSurvey | None = None

    @property
    def filter(self) -> LogFilter:
        return LogFilter(self.rank, self.pattern if self.only_hits else None, self.node)

    @property
    def is_filtering(self) -> bool:
        return bool(self.rank or self.node) or (self.only_hits and self.pattern is not None)

    @property
    def is_looking(self) -> bool:
        """A jump waits for its answer."""
        return self._search is not None

    @property
    def is_counting(self) -> bool:
        """All hits are counted in another thread."""
        return self._count is not None and self._hits is None

    @property
    def share(self) -> float:
        """How much of the log the filter has seen."""
        return self._survey.done_share if self._survey is not None else 1.0

    @property
    def state(self) -> object:
        share = round(self.share, 2)
        by = (self.rank, self.node)
        return (self.pattern, self.only_hits, by, self.noise_shown, self.every_line, share, self._hits is None)

    def apply(self) -> None:
        """Take up what was changed above; rows of before are void."""
        passing = self.filter
        by_text = passing.pattern is not None
        self._window.folding = Folding(
            every_line=self.every_line,
            noise_shown=self.noise_shown or by_text,
            wanted=passing.passes if self.is_filtering else None,
            gaps=not by_text,
        )
        self._window.forget()
        if self._survey is not None:
            self._survey.cancel()
        self._survey = self._window.survey = None
        if self.is_filtering:
            self._survey = self._window.survey = self._text.survey(passing.passes, passing.hint())
            self._survey.start(self._report)

    def grow(self) -> None:
        """More text is there."""
        if self._survey is not None:
            self._survey.grow()

    def use(self, typed: str) -> None:
        """Search for what was typed; "" ends the search."""
        self._stop_counting()
        self.pattern = parse(typed) if typed else None
        self.only_hits = self.pattern is not None and (self.only_hits or self.pattern.inverse)
        self.apply()

    def toggle_only_hits(self) -> None:
        if self.pattern is not None:
            self.only_hits = not self.only_hits or self.pattern.inverse
            self.pattern = replace(self.pattern, inverse=False)
            self.apply()

    def toggle_inverse(self) -> None:
        if self.pattern is not None:
            self.pattern = replace(self.pattern, inverse=not self.pattern.inverse)
            self.only_hits = self.pattern.inverse
            self.apply()

    def clear(self) -> bool:
        """Stop a running jump, else end search and filter. True when it was a jump."""
        if self._search is not None:
            self._search.cancel()
            self._search = None
            return True
        self._stop_counting()
        self.pattern, self.only_hits, self.rank, self.node = None, False, "", ""
        self.apply()
        return False

    def look(self, what: str, offset: int, forward: bool) -> None:
        """Look for the next hit, error, warning or milestone from the line at ``offset`` on."""
        if self._search is not None:
            self._search.cancel()
        if what == "hit":
            if self.pattern is None:
                return
            self._count_hits()
        self._start(what, offset, forward, max(0, offset) // self._text.block_bytes)
        self._may_wrap = what == "hit"

    def wrap_around(self, forward: bool) -> bool:
        """After no hit further on: look from the other end, once. False: that was done already."""
        if not self._may_wrap:
            return False
        self._may_wrap = False
        last = self._text.blocks - 1
        self._start("hit", -1 if forward else self._text.size, forward, 0 if forward else last)
        return True

    def _start(self, what: str, offset: int, forward: bool, block: int) -> None:
        search = self._search = self._text.search(*self._wanted(what))
        search.start(offset, forward, block, lambda found: self._answer(search, found, what, forward))

    def _wanted(self, what: str) -> tuple[Wanted, Hint | None]:
        wanted: Wanted
        hint: Hint | None
        if what == "hit" and self.pattern is not None:
            wanted, hint = self.pattern.hits, self.pattern.hint()
        else:
            wanted, hint = KINDS[what], self._text.hint(what)
        passing = self._window.folding.wanted
        return (wanted if passing is None else lambda line: wanted(line) and passing(line)), hint

    def _count_hits(self) -> None:
        """Count the hits of this pattern in the log as it is now, unless that was done."""
        counted = (self.pattern, self.filter, self._text.generation, self._text.size)
        if counted == self._counted:
            return
        self._stop_counting()
        self._counted = counted
        count = self._count = self._text.count(*self._wanted("hit"))

        def done(hits: Sequence[int]) -> None:
            if self._count is count:
                self._hits = hits
                self._progress()

        count.start(done)

    def _stop_counting(self) -> None:
        if self._count is not None:
            self._count.cancel()
        self._count, self._hits, self._counted = None, None, None

    def place(self, offset: int) -> str:
        """ "3/17" for the hit at ``offset``, "17 hits" for another line, "" while they are not counted."""
        if self._hits is None:
            return ""
        at = bisect_left(self._hits, offset)
        if at < len(self._hits) and self._hits[at] == offset:
            return f"{at + 1}/{len(self._hits)}"
        return plural(len(self._hits), "hit")

    def _report(self) -> None:
        self._progress()

    def accept(self, search: LineSearch) -> bool:
        """Whether this answer is to the question asked last."""
        if search is not self._search:
            return False
        self._search = None
        return True

    def title(self, offset: int) -> Line:
        """What the title says about it. offset: of the line at the cursor."""
        spans = [(f" {only} only ", "key") for only in (self.rank, self.node) if only]
        if self.pattern is not None:
            verb = "only " if self.only_hits else ""
            spans.append((f" {verb}{crop(((self.pattern.label, ''),), 24)[0][0]} ", "key"))
            spans.append((f"{self.place(offset)} ", "key"))
        if self.every_line:
            spans.append((" every line ", "key"))
        if self.share < 1:
            spans.append((f" searching {self.share:.0%} ", "dim"))
        return tuple(spans)
