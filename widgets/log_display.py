"""What the log panel shows: its rows, title and status line. The keys are in ``logview``."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.message import Message
from textual.strip import Strip

from sgmon.model import Snapshot
from sgmon.text import clean
from sgmon.units import duration, plural, rank_list, size
from widgets.line import Line, join_ends
from widgets.log_facts import LogFacts, LogView
from widgets.log_messages import no_log, write_state
from widgets.log_paint import RowFormat, paint_row, rule
from widgets.log_prompt import Prompt
from widgets.log_search import LogSearch
from widgets.log_text import LineSearch, LogText
from widgets.log_viewport import Viewport
from widgets.log_window import Window
from widgets.panel import Panel

#: rows that a key acts on before the panel was ever painted
FIRST_ROWS = 5


class LogDisplay(Panel[LogView]):
    """Everything of the log panel but its keys."""

    class Progress(Message, namespace="log_panel"):
        """The filter has seen more of the log."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, LogDisplay.Progress)

    class Found(Message, namespace="log_panel"):
        """A jump has its answer."""

        def __init__(self, search: LineSearch, offset: int | None, what: str, forward: bool) -> None:
            super().__init__()
            self.search, self.offset, self.what, self.forward = search, offset, what, forward

    def __init__(self, log_text: LogText, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.log_text = log_text
        self.facts = LogFacts(log_text)
        self.window = Window(log_text)
        self.viewport = Viewport(self.window)
        self.search = LogSearch(
            log_text,
            self.window,
            self._report_progress,
            self._report_answer,
        )
        self.prompt = Prompt()
        self.row_format = RowFormat()
        self.notice = ""  # an answer to the last key, until the next one
        self._generation = -1
        self._styles: dict[str, Style] = {}

    # called in other threads: posting a message is all that may be done there

    def _report_progress(self) -> None:
        self.post_message(self.Progress())

    def _report_answer(self, search: LineSearch, offset: int | None, what: str, forward: bool) -> None:
        self.post_message(self.Found(search, offset, what, forward))

    # from the snapshot

    def select(self, snapshot: Snapshot) -> LogView:
        return self.facts.view(snapshot)

    def state_of_rows(self) -> object:
        prompt = (self.prompt.open, self.prompt.text)
        return (self.viewport.state, self.search.state, self.row_format, self.window.expanded, prompt, self.notice)

    def catch_up(self) -> None:
        """Take in what came while the panel was hidden: a key may act on it before the next paint."""
        if self.snapshot is not None:
            self._take_file(self.select(self.snapshot))
        self.viewport.fill(max(FIRST_ROWS, len(self.viewport.shown)))

    # painting

    def heading(self, view: LogView) -> Line:
        name = clean(view.path.rsplit("/", 1)[-1], 40)
        return ((name, "dim"),) if name else ()

    def corner(self, view: LogView) -> Line:
        if self.viewport.following:
            return (*self.search.title(self.viewport.cursor[0]), (" follow ", "ok"))
        fresh = self._new(view)
        words = f"▼ {fresh} (G follows)" if fresh else "paused (G follows)"
        return (*self.search.title(self.viewport.cursor[0]), (f" {words} ", "info"))

    def _new(self, view: LogView) -> str:
        """What has come since the end was left: "128 new"; "" when nothing."""
        size_then, lines_then = self.viewport.left_at
        if view.size == size_then:
            return ""
        if not view.exact or view.total < lines_then:
            return f"{size(max(0, view.size - size_then))} new"
        return f"{view.total - lines_then} new"

    def compose_rows(self, view: LogView) -> list[Line]:
        width, height = self.size.width, self.size.height
        self._adapt(view, width)
        has_status = height >= 6 or self.prompt.open
        room = max(0, height - 1 - (1 if has_status else 0))
        rows = list(self.paint(view, width, room))[:room]
        rows += [()] * (room - len(rows))
        if has_status:
            rows.append(self.prompt.line() if self.prompt.open else self._status(view, width))
        return [self.title_row(view), *rows]

    def paint(self, view: LogView, width: int, height: int) -> Sequence[Line]:
        if not view.size:
            self.viewport.shown = []
            return no_log(view.kind, view.change, view.path, view.note)
        live = self._live_silence(view)
        shown = self.viewport.fill(height - len(live) if self.viewport.following else height)
        if not shown:
            words = "searching ..." if self.window.waiting else "no line passes (esc shows all)"
            return [(("  ", ""), (words, "dim"))]
        chosen = self.viewport.index if self.has_focus else -1
        lines = [paint_row(placed, self.row_format, cursor=index == chosen) for index, placed in enumerate(shown)]
        if live and len(lines) < height and self.viewport.at_end:
            lines += live
        return lines

    def _live_silence(self, view: LogView) -> list[Line]:
        if not view.quiet_s or self.search.is_filtering:
            return []
        return [rule(f"silent for {duration(view.quiet_s)}", self.row_format.width, "warn")]

    def _adapt(self, view: LogView, width: int) -> None:
        """Take in a new file, new ranks, a new width."""
        if not self._take_file(view):
            self.search.grow()
        rank_width = 0
        if view.expected:
            rank_width = min(9, max(4, len(rank_list(view.expected)), *(len(rank) for rank in view.expected)))
        self.row_format = replace(
            self.row_format,
            width=width,
            expected=view.expected,
            first_t=view.first_t,
            rank_width=rank_width,
            pattern=self.search.pattern,
            milestones=view.milestones,
            node_width=min(10, max(map(cell_len, view.nodes))) if len(view.nodes) > 1 and width >= 70 else 0,
        )
        wrap_width = max(24, self.row_format.room)
        if wrap_width != self.window.expanded_width:
            self.window.expanded_width = wrap_width
            self.window.forget()
        self.window.wrap_width = wrap_width if self.row_format.wraps else 0

    def _take_file(self, view: LogView) -> bool:
        """Begin at the end of another file than before; whether it was another."""
        if view.generation == self._generation:
            return False
        self._generation = view.generation
        self.viewport.restart()
        self.window.expanded = frozenset()
        self.search.apply()
        return True

    def _status(self, view: LogView, width: int) -> Line:
        if self.notice:
            return ((f" {self.notice}", "info"),)
        if view.note and view.change in ("missing", "unreadable"):  # the rows above are old
            return ((f" {clean(view.note, 300)}", "warn"),)
        least = "" if view.exact else "at least "
        words = f"{least}{plural(view.total, 'line')}"
        chosen = self.viewport.chosen
        if not self.viewport.following and chosen is not None and chosen.row.line.number:
            words = f"line {chosen.row.line.number} of {least}{view.total}"
        words = f"{words} · {view.left_out}" if view.left_out else words
        right: Line = ()
        for fact in write_state(view.size, view.rate, view.writer_offset, view.last_byte_age_s):
            longer = (*right, ((" · " if right else "") + fact, "dim"))
            if len(words) + 3 + sum(cell_len(text) for text, _ in longer) > width:
                break
            right = longer
        return join_ends(((f" {words}", "dim"),), right, width)

    def named_style(self, name: str) -> Style:
        """Kept: a screenful of log in motion asks for a style a thousand times a second."""
        style = self._styles.get(name)
        if style is None:
            style = self._styles[name] = super().named_style(name)
        return style

    def _make_strip(self, line: Line, width: int) -> Strip:
        base = self._styles.get("")
        if base is None:
            base = self._styles[""] = self.rich_style
        segments = [Segment(text, base + self.named_style(style) if style else base) for text, style in line if text]
        return Strip(segments).adjust_cell_length(width, base)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()

    def _notify(self, notice: str) -> None:
        self.notice = notice
        self.update_view()
