"""What is looked for in the log: pattern, rank, kinds of lines. The looking itself is done in other threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from sgmon.model import LogLine
from widgets.line import Line, crop
from widgets.log_filter import LogFilter, Pattern, parse
from widgets.log_rows import Folding, is_error, is_milestone, is_warning
from widgets.log_text import BlockSurvey, LineSearch, LogText, Wanted
from widgets.log_window import Window

KINDS: dict[str, Callable[[LogLine], bool]] = {
    "error": is_error,
    "warning": is_warning,
    "milestone": is_milestone,
}
Answer = Callable[[LineSearch, "int | None", str, bool], object]


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
        self.noise_shown = False
        self.every_line = False
        self._search: LineSearch | None = None
        self._survey: BlockSurvey | None = None

    @property
    def filter(self) -> LogFilter:
        return LogFilter(self.rank, self.pattern if self.only_hits else None)

    @property
    def is_filtering(self) -> bool:
        return bool(self.rank) or (self.only_hits and self.pattern is not None)

    @property
    def is_looking(self) -> bool:
        """A jump waits for its answer."""
        return self._search is not None

    @property
    def share(self) -> float:
        """How much of the log the filter has seen."""
        return self._survey.done_share if self._survey is not None else 1.0

    @property
    def state(self) -> object:
        share = round(self.share, 2)
        return (self.pattern, self.only_hits, self.rank, self.noise_shown, self.every_line, share)

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
        self.pattern, self.only_hits, self.rank = None, False, ""
        self.apply()
        return False

    def look(self, what: str, offset: int, forward: bool) -> None:
        """Look for the next hit, error, warning or milestone from the line at ``offset`` on."""
        if self._search is not None:
            self._search.cancel()
        if what == "hit":
            if self.pattern is None:
                return
            wanted, hint = cast(Wanted, self.pattern.hits), self.pattern.hint()
        else:
            wanted, hint = KINDS[what], self._text.hint(what)
        passing = self._window.folding.wanted
        both = wanted if passing is None else lambda line: wanted(line) and passing(line)
        search = self._search = self._text.search(both, hint)
        block = max(0, offset) // self._text.block_bytes

        def done(found: int | None) -> None:
            self._answer(search, found, what, forward)

        search.start(offset, forward, block, done)

    def _report(self) -> None:
        self._progress()

    def accept(self, search: LineSearch) -> bool:
        """Whether this answer is to the question asked last."""
        if search is not self._search:
            return False
        self._search = None
        return True

    def title(self) -> Line:
        """What the title says about it."""
        spans: list[tuple[str, str]] = []
        if self.rank:
            spans.append((f" {self.rank} only ", "key"))
        if self.pattern is not None:
            verb = "only " if self.only_hits else ""
            spans.append((f" {verb}{crop(((self.pattern.label, ''),), 24)[0][0]} ", "key"))
        if self.every_line:
            spans.append((" every line ", "key"))
        if self.share < 1:
            spans.append((f" searching {self.share:.0%} ", "dim"))
        return tuple(spans)
