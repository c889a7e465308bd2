"""Panel 4: the log. A window over byte offsets of the file, whatever its size."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace
from rich.cells import cell_len
from textual import events
from textual.binding import BindingType

from sgmon.units import plural
from widgets import log_keys
from widgets.log_display import LogDisplay
from widgets.log_facts import LogView
from widgets.log_messages import HELD_BACK
from widgets.log_paint import CLOCKS, RANK_STYLES
from widgets.log_window import SUFFIX_CELLS

__all__ = ["HELD_BACK", "LogPanel", "LogView"]


class LogPanel(LogDisplay):
    """Follows at the end only; every move up stops that, and ``G`` resumes it."""

    NUMBER = "4"
    TITLE = "log"
    PROBE = "log"
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = log_keys.HINTS
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
    BINDINGS: ClassVar[list[BindingType]] = [*log_keys.BINDINGS]

    # moving

    def action_move(self, rows: int) -> None:
        self.viewport.move(rows)
        self._notify("")

    def action_page(self, pages: int) -> None:
        self.viewport.scroll(pages * max(1, len(self.viewport.shown) - 1))
        self._notify("")

    def action_first(self) -> None:
        self.viewport.first()
        self._notify("")

    def action_follow(self) -> None:
        self.viewport.following = True
        self._notify("")

    def action_sideways(self, cells: int) -> None:
        if not self.row_format.wraps:
            self.row_format = replace(self.row_format, x=max(0, min(4096, self.row_format.x + cells)))
        self._notify("")

    def goto_line(self, number: int, node: str = "") -> None:
        """Show line ``number`` (from 1), of one node's log where there are several; other panels lead here."""
        offset = self.log_text.offset_of(number, node)
        if offset is not None:
            self.goto_offset(offset)
        elif self.log_text.indexed < self.log_text.size:
            self._notify(f"line {number} is not indexed yet")
        else:
            self._notify(f"there is no line {number}")

    def goto_offset(self, offset: int) -> None:
        """Show the line at this byte offset."""
        self.viewport.go(offset)
        self._notify("")

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.viewport.scroll(-3)
        self._notify("")

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.viewport.scroll(3)
        self._notify("")

    def on_click(self, event: events.Click) -> None:
        if not self.screen.selections:  # the end of a drag is no click
            self.viewport.choose(event.y - 1)
            self._notify("")

    # searching and filtering

    def on_key(self, event: events.Key) -> None:
        done = self.prompt.key(event) if self.prompt.open else ""
        if not done:
            return
        event.stop()
        event.prevent_default()
        if done == "enter":
            self.search.use(self.prompt.text)
            if self.search.pattern is not None and not self.search.only_hits:
                here = self.viewport.cursor[0]  # a hit on this line counts
                self._jump("hit", *((-1, here + 1) if self.viewport.following else (1, here - 1)))
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
        self._notify("")

    def action_hit(self, step: int) -> None:
        if self.search.pattern is None:
            self._notify("nothing is searched for yet: press / first")
        elif self.search.only_hits:
            self.action_move(step)
        else:
            self._jump("hit", step, self.viewport.cursor[0])

    def action_jump(self, what: str, step: int) -> None:
        known = self.view.milestones if self.view is not None else None
        chosen = self.viewport.chosen
        if what == "milestone" and known and chosen is not None and chosen.row.line.number:
            self._to_milestone(known, chosen.row.line.number, step)
            return
        self._jump(what, step, self.viewport.cursor[0])

    def _to_milestone(self, known: frozenset[int], here: int, step: int) -> None:
        step = -1 if self.viewport.following else step
        near = [n for n in known if (n > here if step > 0 else n < here)]
        if not near:
            self._notify(f"no milestone further {'down' if step > 0 else 'up'}")
            return
        self.goto_line(min(near) if step > 0 else max(near))

    def _jump(self, what: str, step: int, offset: int) -> None:
        if self.viewport.following and what != "hit":  # nothing is further down: the nearest one is meant
            step = -1
        self.search.look(what, offset, step > 0)
        self._notify(f"looking for the next {what} ..." if step > 0 else f"looking for the {what} before ...")

    def on_log_panel_found(self, message: LogDisplay.Found) -> None:
        message.stop()
        if not self.search.accept(message.search):
            return
        if message.offset is None and message.what == "hit" and self.search.wrap_around(message.forward):
            return
        if message.offset is None and message.what == "hit":
            self._notify(f"no match in {plural(self.log_text.total, 'line')}{self._literally()}")
        elif message.offset is None:
            self._notify(f"no {message.what} further {'down' if message.forward else 'up'}")
        else:
            wrapped = self._is_wrapped(message.offset, message.forward)
            self.goto_offset(message.offset)
            if message.what == "hit":
                self._bring_into_view()
                self._notify((wrapped + self._literally()).removeprefix("; "))

    def _is_wrapped(self, offset: int, forward: bool) -> str:
        here = self.viewport.cursor[0]
        if forward and offset < here:
            return "from the top again"
        return "from the end again" if not forward and offset > here else ""

    def _literally(self) -> str:
        pattern = self.search.pattern
        return "; no valid expression: its text is looked for" if pattern and pattern.is_taken_literally else ""

    def _bring_into_view(self) -> None:
        """Scroll sideways to a hit that lies beyond the right edge."""
        chosen, pattern = self.viewport.chosen, self.search.pattern
        if chosen is None or pattern is None or self.row_format.wraps:
            return
        hit = pattern.regex.search(chosen.text)
        end = cell_len(chosen.text[: hit.end()]) if hit is not None else 0
        room = self.row_format.room - SUFFIX_CELLS
        self.row_format = replace(self.row_format, x=end - room if end > room else 0)
        self.update_view()

    def on_log_panel_progress(self, message: LogDisplay.Progress) -> None:
        message.stop()
        self.update_view()

    def action_only_hits(self) -> None:
        if self.search.pattern is None:
            self.action_search()
        self.search.toggle_only_hits()
        self._notify("")

    def action_inverse(self) -> None:
        self.search.toggle_inverse()
        self._notify("" if self.search.pattern else "search first (/), then ! leaves only the other lines")

    def action_rank(self, step: int) -> None:
        ranks = ["", *(self.view.expected if self.view is not None else ())]
        if len(ranks) < 3:
            self._notify("this log has one rank")
            return
        chosen = self.viewport.chosen
        here = chosen.row.line.rank if chosen is not None and not self.viewport.following else ""
        if not self.search.rank and here in ranks[1:]:
            self.search.rank = here  # the first press takes the rank under the cursor
        else:
            at = ranks.index(self.search.rank) if self.search.rank in ranks else 0
            self.search.rank = ranks[(at + step) % len(ranks)]
        self.search.apply()
        self._notify("")

    def action_node(self, step: int) -> None:
        nodes = ["", *(self.view.nodes if self.view is not None else ())]
        if len(nodes) < 3:
            self._notify("this log is of one machine")
            return
        chosen = self.viewport.chosen
        here = chosen.row.line.node if chosen is not None and not self.viewport.following else ""
        at = nodes.index(self.search.node) if self.search.node in nodes else 0
        self.search.node = here if not self.search.node and here in nodes[1:] else nodes[(at + step) % len(nodes)]
        self.search.apply()
        self._notify("")

    def action_clear(self) -> None:
        """Esc: first the running jump, then search and filter."""
        self._notify("search stopped" if self.search.clear() else "")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "copy":  # selected text is copied by the screen
            return not self.screen.selections
        if action == "clear":  # without a search Esc is the screen's
            return self.search.pattern is not None or self.search.is_filtering or self.search.is_looking
        return True

    # looks

    def action_noise(self) -> None:
        self.search.noise_shown = not self.search.noise_shown
        self.search.apply()
        self._notify("")

    def action_every_line(self) -> None:
        self.search.every_line = not self.search.every_line
        self.search.apply()
        self._notify("")

    def action_wrap(self) -> None:
        self.row_format = replace(self.row_format, wraps=not self.row_format.wraps, x=0)
        self.window.forget()
        self._notify("")

    def action_clock(self) -> None:
        after = CLOCKS[(CLOCKS.index(self.row_format.clock) + 1) % len(CLOCKS)]
        has_no_start = after == "since" and self.row_format.first_t is None
        after = "none" if has_no_start else after
        self.row_format = replace(self.row_format, clock=after)
        self._notify("no line has a time: none since the start can be shown" if has_no_start else "")

    def action_expand(self) -> None:
        chosen = self.viewport.chosen
        if chosen is not None and chosen.row.kind == "noise":
            self.action_noise()
        elif chosen is not None:
            if not self.viewport.following:
                self.viewport.choose(self.viewport.index)
            self.window.expanded ^= {chosen.row.offset}
            self.window.forget()
            self._notify("")

    def action_copy(self) -> None:
        chosen = self.viewport.chosen
        if chosen is not None:
            self.app.copy_to_clipboard(chosen.row.line.text)
            number = chosen.row.line.number
            self._notify(f"copied line {number}" if number else "copied the line")
