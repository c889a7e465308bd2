"""Panel 4: the log. A window over byte offsets of the file, whatever its size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from sgmon.model import LogLine, Snapshot
from sgmon.text import clean
from sgmon.units import duration, plural, rank_list, size
from widgets.line import Line, crop, join_ends
from widgets.log_filter import LogFilter, Pattern, parse
from widgets.log_paint import CLOCKS, RANK_STYLES, Brush, paint_row, rule
from widgets.log_prompt import Prompt
from widgets.log_rows import QUIET_S, Folding, is_error, is_milestone, is_warning
from widgets.log_text import BlockSurvey, LineSearch, LogText, Wanted
from widgets.log_window import Key, Placed, Window
from widgets.log_words import HELD_BACK, no_log, write_state
from widgets.panel import Panel

__all__ = ["HELD_BACK", "LogPanel", "LogView"]

_JUMPS: dict[str, tuple[str, Callable[[LogLine], bool]]] = {
    "error": ("error", is_error),
    "warning": ("warning", is_warning),
    "milestone": ("milestone", is_milestone),
}
_TOP: Key = (-1, 0, 0)


@dataclass(frozen=True)
class LogView:
    """What decides the panel's look, apart from where the reader stands."""

    version: int = 0
    generation: int = 0
    path: str = ""
    kind: str = ""
    change: str = ""
    note: str = ""
    size: int = 0
    total: int = 0
    exact: bool = True
    writer_offset: int | None = None
    expected: tuple[str, ...] = ()
    first_t: float | None = None
    last_byte_age_s: int | None = None
    quiet_s: int = 0
    rate: float | None = None


class LogPanel(Panel[LogView]):
    """Follows at the end only; every move up stops that, and ``G`` resumes it."""

    NUMBER = "4"
    TITLE = "log"
    PROBE = "log"
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("/", "search"),
        ("n", "next"),
        ("r", "rank"),
        ("e", "error"),
        ("m", "milestone"),
        ("l", "wrap"),
        ("f", "noise"),
        ("G", "follow"),
    )
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"line--rank{n}" for n in range(RANK_STYLES)} | {"line--bad-soft"}
    DEFAULT_CSS = """
    LogPanel {
        .line--bad-soft { color: $error; }
        .line--rank0 { color: $primary; }
        .line--rank1 { color: $secondary; }
        .line--rank2 { color: $accent; }
        .line--rank3 { color: $success; }
        .line--rank4 { color: $primary; text-style: bold; }
        .line--rank5 { color: $secondary; text-style: bold; }
        .line--rank6 { color: $accent; text-style: bold; }
        .line--rank7 { color: $success; text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "page(-1)", "a page up", show=False, id="log.pageup"),
        Binding("pagedown", "page(1)", "a page down", show=False, id="log.pagedown"),
        Binding("g,home", "first", "first line", show=False, id="log.first"),
        Binding("G,end", "follow", "last line, and follow", show=False, id="log.follow"),
        Binding("left", "sideways(-16)", "to the left", show=False, id="log.left"),
        Binding("right", "sideways(16)", "to the right", show=False, id="log.right"),
        Binding("slash", "search", "search", show=False, id="log.search"),
        Binding("n", "hit(1)", "next hit", show=False, id="log.next"),
        Binding("N", "hit(-1)", "hit before", show=False, id="log.previous"),
        Binding("ampersand", "only_hits", "only lines that hit", show=False, id="log.only"),
        Binding("exclamation_mark", "inverse", "only lines that do not hit", show=False, id="log.inverse"),
        Binding("r", "rank(1)", "only the next rank", show=False, id="log.rank"),
        Binding("R", "rank(-1)", "only the rank before", show=False, id="log.rank_back"),
        Binding("e", "jump('error', 1)", "next error", show=False, id="log.error"),
        Binding("E", "jump('error', -1)", "error before", show=False, id="log.error_back"),
        Binding("w", "jump('warning', 1)", "next warning", show=False, id="log.warning"),
        Binding("W", "jump('warning', -1)", "warning before", show=False, id="log.warning_back"),
        Binding("m", "jump('milestone', 1)", "next milestone", show=False, id="log.milestone"),
        Binding("M", "jump('milestone', -1)", "milestone before", show=False, id="log.milestone_back"),
        Binding("l", "wrap", "wrap long lines", show=False, id="log.wrap"),
        Binding("t", "clock", "clock, time since the start, or none", show=False, id="log.clock"),
        Binding("f", "noise", "known harmless and access lines", show=False, id="log.noise"),
        Binding("u", "every_line", "fold nothing", show=False, id="log.every"),
        Binding("enter", "expand", "the whole line", show=False, id="log.expand"),
        Binding("c", "copy", "copy the line", show=False, id="log.copy"),
        Binding("escape", "clear", "end search and filter", show=False, id="log.clear"),
    ]

    class Progress(Message):
        """A search found something new, or looked further."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, LogPanel.Progress)

    class Found(Message):
        """A jump has its answer."""

        def __init__(self, search: LineSearch, offset: int | None, what: str, forward: bool) -> None:
            super().__init__()
            self.search, self.offset, self.what, self.forward = search, offset, what, forward

    def __init__(self, log_text: LogText, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.log_text = log_text
        self.window = Window(log_text)
        self.following = True
        self.prompt = Prompt()
        self.filter = LogFilter()
        self.pattern: Pattern | None = None
        self.only_hits = False
        self.brush = Brush()
        self.folding = Folding()
        self.words = ""  # the last thing to tell, until the next key
        self._top: Key = _TOP
        self._cursor: Key = _TOP
        self._shown: list[Placed] = []
        self._search: LineSearch | None = None
        self._survey: BlockSurvey | None = None
        self._generation = -1
        self._left_at: tuple[int, int] = (0, 0)  # size and lines when following stopped
        self._expanded: frozenset[int] = frozenset()
        self._sizes: list[tuple[float, int]] = []

    # from the snapshot

    def select(self, snapshot: Snapshot) -> LogView:
        text, log = self.log_text, snapshot.log
        since = log.last_byte_t
        age_s = None if since is None else max(0, int(snapshot.t - since))
        return LogView(
            version=text.version,
            generation=text.generation,
            path=text.path or log.path,
            kind=text.kind or log.kind,
            change=text.change,
            note=text.note or log.note,
            size=text.size,
            total=text.total,
            exact=text.indexed >= text.size,
            writer_offset=text.writer_offset,
            expected=expected_ranks(snapshot),
            first_t=log.first_t,
            last_byte_age_s=age_s,
            quiet_s=age_s if age_s is not None and age_s >= QUIET_S and not log.ready_line else 0,
            rate=self._rate(snapshot.t, text.size),
        )

    def _rate(self, t: float, size_bytes: int) -> float | None:
        """Growth over the last five seconds of the watch."""
        sizes = self._sizes
        if not sizes or sizes[-1] != (t, size_bytes):
            if sizes and size_bytes < sizes[-1][1]:
                sizes.clear()
            sizes.append((t, size_bytes))
        while len(sizes) > 2 and sizes[1][0] <= t - 5:
            sizes.pop(0)
        span = t - sizes[0][0]
        return round((size_bytes - sizes[0][1]) / span, -2) if span >= 1 else None

    def state_of_rows(self) -> object:
        share = round(self._survey.done_share, 2) if self._survey is not None else 1
        return (
            *(self.following, self._top, self._cursor, self.filter, self.pattern, self.only_hits, self.folding),
            *(self.brush, self.prompt.open, self.prompt.text, self.words, self._expanded, share),
        )

    # painting

    def heading(self, view: LogView) -> Line:
        name = clean(view.path.rsplit("/", 1)[-1], 40)
        return ((name, "dim"),) if name else ()

    def corner(self, view: LogView) -> Line:
        spans: list[tuple[str, str]] = []
        if self.filter.rank:
            spans.append((f" {self.filter.rank} only ", "key"))
        if self.pattern is not None:
            verb = "only " if self.only_hits else ""
            spans.append((f" {verb}{crop(((self.pattern.label, ''),), 24)[0][0]} ", "key"))
        if self._survey is not None and self._survey.done_share < 1:
            spans.append((f" searching {self._survey.done_share:.0%} ", "dim"))
        if self.following:
            spans.append((" follow ", "ok"))
        else:
            spans.append((f" ▼ {self._new(view)} (G) ", "info"))
        return tuple(spans)

    def _new(self, view: LogView) -> str:
        if not view.exact or view.total < self._left_at[1]:
            grown = view.size - self._left_at[0]
            return f"{size(grown)} new" if grown > 0 else "0 new"
        return f"{view.total - self._left_at[1]} new"

    def compose_rows(self, view: LogView) -> list[Line]:
        width, height = self.size.width, self.size.height
        self._adapt(view, width)
        has_status = height >= 6 or self.prompt.open
        room = max(0, height - 1 - (1 if has_status else 0))
        rows = list(self.paint(view, width, room))
        title = self.title_row(view)
        rows += [()] * (room - len(rows))
        if has_status:
            rows.append(self.prompt.line() if self.prompt.open else self._status(view, width))
        return [title, *rows]

    def paint(self, view: LogView, width: int, height: int) -> Sequence[Line]:
        if not view.size:
            self._shown = []
            return no_log(view.kind, view.change, view.path, view.note)
        live = self._live_silence(view)
        self._shown = self._visible(height - len(live) if self.following else height)
        if not self._shown:
            words = "searching ..." if self.window.waiting else "no line passes (esc shows all)"
            return [(("  ", ""), (words, "dim"))]
        chosen = self._cursor_index()
        lines = [
            paint_row(placed, self.brush, cursor=self.has_focus and index == chosen)
            for index, placed in enumerate(self._shown)
        ]
        if live and len(lines) < height and not self.window.after(_next(self._shown[-1].key), 1):
            lines += live
        return lines

    def _live_silence(self, view: LogView) -> list[Line]:
        if not view.quiet_s or self._survey is not None:
            return []
        return [rule(f"{duration(view.quiet_s)} silence so far", self.brush.width, "warn")]

    def _adapt(self, view: LogView, width: int) -> None:
        """Take in a new file, new ranks, a new width."""
        if view.generation != self._generation:
            self._generation = view.generation
            self.window.forget()
            self._top = self._cursor = _TOP
            self.following = True
            self._left_at = (0, 0)
            self._expanded = frozenset()
            self._start_survey()
        elif self._survey is not None:
            self._survey.grow()
        rank_width = 0
        if view.expected and view.expected != ("",):
            rank_width = min(9, max(4, len(rank_list(view.expected)), *(len(rank) for rank in view.expected)))
        brush = replace(
            self.brush,
            width=width,
            expected=view.expected,
            first_t=view.first_t,
            rank_width=rank_width,
            pattern=self.pattern,
        )
        wrap_width = max(8, brush.room - 12)
        if brush.rank_width != self.brush.rank_width or wrap_width != max(8, self.brush.room - 12):
            self.window.forget()
        self.brush = brush
        self.window.expanded_width = wrap_width
        self.window.wrap_width = wrap_width if brush.wraps else 0
        self.window.expanded = self._expanded

    def _visible(self, room: int) -> list[Placed]:
        window = self.window
        if self.following:
            rows = window.before(None, room)
            if rows:
                self._cursor, self._top = rows[-1].key, rows[0].key
            return rows
        rows = window.after(self._top, room)
        if len(rows) < room and not window.waiting:
            rows = window.before(None, room)
        return rows

    def _cursor_index(self) -> int:
        """The shown row at the cursor; when folding hid it, the row before it, which counts it."""
        index = 0
        for i, placed in enumerate(self._shown):
            if placed.key > self._cursor:
                break
            index = i
        return index

    def _status(self, view: LogView, width: int) -> Line:
        if self.words:
            return ((f" {self.words}", "info"),)
        lines = f"{'' if view.exact else 'at least '}{plural(view.total, 'line')}"
        if not self.following and self._shown:
            line = self._shown[self._cursor_index()].row.line
            if line.number:
                lines = f"line {line.number} of {'' if view.exact else 'at least '}{view.total}"
        rate = 0.0 if view.rate is None and view.last_byte_age_s else view.rate
        facts = write_state(view.size, rate, view.writer_offset, view.last_byte_age_s)
        left: Line = ((f" {lines}", "dim"),)
        right: Line = ()
        for fact in facts:
            longer = (*right, ((" · " if right else "") + fact, "dim"))
            if cell_len(lines) + 3 + sum(cell_len(text) for text, _ in longer) > width:
                break
            right = longer
        return join_ends(left, right, width)

    # moving

    def action_move(self, rows: int) -> None:
        """Move the cursor; at an edge the view moves with it."""
        self._tell("")
        shown = self._shown
        if not shown:
            return
        target = self._cursor_index() + rows
        if target < 0:
            above = self.window.before(shown[0].key, -target)
            self._stop_following()
            self._top = self._cursor = above[0].key if above else shown[0].key
        elif target >= len(shown):
            below = self.window.after(_next(shown[-1].key), target - len(shown) + 1)
            self._cursor = below[-1].key if below else shown[-1].key
            if below:
                top = self.window.before(self._cursor, len(shown) - 1)
                self._top = top[0].key if top else self._cursor
        else:
            self._cursor = shown[target].key
        if rows < 0:
            self._stop_following()
        elif not self.following and not self.window.after(_next(self._cursor), 1) and not self.window.waiting:
            self.following = True
        self.update_view()

    def action_page(self, pages: int) -> None:
        self._scroll(pages * max(1, len(self._shown) - 1))

    def _scroll(self, rows: int) -> None:
        """Move the view; the cursor stays where it is on the screen."""
        self._tell("")
        if not self._shown:
            return
        index, top = self._cursor_index(), self._shown[0].key
        if rows < 0:
            above = self.window.before(top, -rows)
            self._stop_following()
            if not above:
                self.action_move(rows)
                return
            self._top = above[0].key
        elif self.following:
            return
        else:
            below = self.window.after(top, rows + len(self._shown))
            if len(below) < rows + len(self._shown) and not self.window.waiting:
                self.action_follow()
                return
            self._top = below[min(rows, len(below) - 1)].key
        now = self.window.after(self._top, index + 1)
        self._cursor = now[-1].key if now else self._top
        self.update_view()

    def _stop_following(self) -> None:
        if self.following:
            self.following = False
            self._left_at = (self.log_text.size, self.log_text.total)

    def action_first(self) -> None:
        self._stop_following()
        self._top = self._cursor = _TOP
        self._tell("")

    def action_follow(self) -> None:
        self.following = True
        self._tell("")

    def action_sideways(self, cells: int) -> None:
        if not self.brush.wraps:
            self.brush = replace(self.brush, x=max(0, min(4096, self.brush.x + cells)))
        self._tell("")

    def goto_line(self, number: int) -> None:
        """Show line ``number`` (from 1); other panels lead here."""
        offset = self.log_text.offset_of(number)
        if offset is None:
            self._tell(f"line {number} is not indexed yet" if self.log_text.indexed < self.log_text.size else "")
        else:
            self.goto_offset(offset)

    def goto_offset(self, offset: int) -> None:
        """Show the line at this byte offset, a third down the screen."""
        self._stop_following()
        self._cursor = (offset, 0, 0)
        above = self.window.before(self._cursor, max(1, len(self._shown) // 3))
        self._top = above[0].key if above else self._cursor
        self.update_view()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll(-3)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll(3)

    def on_click(self, event: events.Click) -> None:
        if 0 < event.y <= len(self._shown):
            self._stop_following()
            self._top, self._cursor = self._shown[0].key, self._shown[event.y - 1].key
            self.update_view()

    # searching and filtering

    def on_key(self, event: events.Key) -> None:
        if not self.prompt.open:
            return
        done = self.prompt.key(event)
        if not done:
            return
        event.stop()
        event.prevent_default()
        if done == "enter":
            self._use_pattern(self.prompt.text)
        self.update_view()

    def on_paste(self, event: events.Paste) -> None:
        if self.prompt.open:
            event.stop()
            self.prompt.paste(event.text)
            self.update_view()

    def on_blur(self, event: events.Blur) -> None:
        self.prompt.open = False
        super().on_blur(event)

    def action_search(self) -> None:
        self.prompt.start()
        self._tell("")

    def _use_pattern(self, typed: str) -> None:
        self.pattern = parse(typed) if typed else None
        self.only_hits = self.pattern is not None and (self.only_hits or self.pattern.inverse)
        self._refilter()
        if self.pattern is not None and not self.only_hits:
            self._jump(-1, "hit", self.pattern.hits, include=True)

    def action_hit(self, step: int) -> None:
        if self.pattern is None:
            self.action_search()
        elif self.only_hits:
            self.action_move(step)
        else:
            self._jump(step, "hit", self.pattern.hits)

    def action_only_hits(self) -> None:
        if self.pattern is None:
            self.action_search()
            return
        self.only_hits = not self.only_hits
        self.pattern = replace(self.pattern, inverse=False)
        self._refilter()

    def action_inverse(self) -> None:
        if self.pattern is None:
            self._tell("search first (/), then ! leaves only the other lines")
            return
        self.pattern = replace(self.pattern, inverse=not self.pattern.inverse)
        self.only_hits = self.pattern.inverse
        self._refilter()

    def action_rank(self, step: int) -> None:
        ranks = ["", *(self.view.expected if self.view is not None else ())]
        if len(ranks) < 3:
            self._tell("this log has one rank")
            return
        here = self._shown[self._cursor_index()].row.line.rank if self._shown else ""
        if not self.filter.rank and here in ranks[1:] and step > 0 and not self.following:
            rank = here  # the first press takes the rank under the cursor
        else:
            at = ranks.index(self.filter.rank) if self.filter.rank in ranks else 0
            rank = ranks[(at + step) % len(ranks)]
        self.filter = replace(self.filter, rank=rank)
        self._refilter()

    def action_clear(self) -> None:
        """Esc: first the running search, then pattern and rank."""
        if self._search is not None:
            self._search.cancel()
            self._search = None
            self._tell("search stopped")
            return
        self.pattern, self.only_hits, self.filter = None, False, LogFilter()
        self._refilter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "clear":  # otherwise Esc is the screen's
            return self.pattern is not None or bool(self.filter.rank) or self._search is not None or None
        return True

    def _refilter(self) -> None:
        self.filter = replace(self.filter, pattern=self.pattern if self.only_hits else None)
        active = bool(self.filter.rank or self.filter.pattern)
        wanted: Wanted | None = self.filter.passes if active else None
        self.folding = replace(self.folding, wanted=wanted, gaps=self.filter.pattern is None)
        if self.filter.pattern is not None:
            self.folding = replace(self.folding, noise_shown=True)
        else:
            self.folding = replace(self.folding, noise_shown=self._noise_shown)
        self.window.folding = self.folding
        self.window.forget()
        self._start_survey()
        self._tell("")

    _noise_shown = False

    def _start_survey(self) -> None:
        if self._survey is not None:
            self._survey.cancel()
        self._survey = self.window.survey = None
        if self.folding.wanted is not None:
            self._survey = self.log_text.survey(self.folding.wanted, self.filter.hint())
            self.window.survey = self._survey
            self._survey.start(lambda: self.post_message(self.Progress()))

    def action_jump(self, what: str, step: int) -> None:
        word, wanted = _JUMPS[what]
        self._jump(step, word, wanted)

    def _jump(self, step: int, what: str, wanted: Wanted, include: bool = False) -> None:
        """Look for the next line of a kind in another thread; the answer comes as a message."""
        if self._search is not None:
            self._search.cancel()
        passes = self.folding.wanted
        both = wanted if passes is None else lambda line: wanted(line) and passes(line)
        hint = self.pattern.hint() if what == "hit" and self.pattern is not None else None
        search = self.log_text.search(both, hint)
        self._search = search
        offset = max(0, self._cursor[0])
        block = offset // self.log_text.block_bytes
        if self._cursor == _TOP and step > 0:
            offset = -1
        elif include and step < 0:
            offset += 1
        forward = step > 0
        search.start(
            offset,
            forward,
            block,
            lambda found: self.post_message(self.Found(search, found, what, forward)),
        )
        self._tell(f"looking for the next {what} ..." if forward else f"looking for the {what} before ...")

    def on_log_panel_found(self, message: Found) -> None:
        message.stop()
        if message.search is not self._search:
            return
        self._search = None
        if message.offset is None:
            self.words = f"no {message.what} " + ("further down" if message.forward else "further up")
            self.update_view()
            return
        self.words = ""
        self.goto_offset(message.offset)

    def on_log_panel_progress(self, message: Progress) -> None:
        message.stop()
        self.update_view()

    # looks

    def action_wrap(self) -> None:
        self.brush = replace(self.brush, wraps=not self.brush.wraps, x=0)
        self.window.forget()
        self._tell("")

    def action_clock(self) -> None:
        after = CLOCKS[(CLOCKS.index(self.brush.clock) + 1) % len(CLOCKS)]
        self.brush = replace(self.brush, clock=after)
        self.window.forget()
        self._tell("")

    def action_noise(self) -> None:
        self._noise_shown = not self._noise_shown
        self._refilter()

    def action_every_line(self) -> None:
        self.folding = replace(self.folding, every_line=not self.folding.every_line)
        self._refilter()
        self._tell("every line, nothing folded" if self.folding.every_line else "")

    def action_expand(self) -> None:
        if self._shown:
            offset = self._shown[self._cursor_index()].row.offset
            self._expanded = self._expanded ^ {offset}
            self._stop_following()
            self.window.forget()
            self._tell("")

    def action_copy(self) -> None:
        if self._shown:
            line = self._shown[self._cursor_index()].row.line
            self.app.copy_to_clipboard(line.text)
            self._tell(f"copied line {line.number}" if line.number else "copied the line")

    def _tell(self, words: str) -> None:
        self.words = words
        self.update_view()


def _next(key: Key) -> Key:
    return (key[0], key[1], key[2] + 1)


def expected_ranks(snapshot: Snapshot) -> tuple[str, ...]:
    """Ranks that should print: of the schedulers that live, else those that the log has shown."""
    ranks = {p.rank for p in snapshot.procs.processes if p.role == "scheduler" and p.rank}
    ranks |= {r.rank for r in snapshot.log.ranks if r.rank}
    return tuple(sorted(ranks, key=_by_number))


def _by_number(rank: str) -> tuple[object, ...]:
    parts = "".join(c if c.isdigit() else " " for c in rank).split()
    return (len(parts), *(int(part) for part in parts))
