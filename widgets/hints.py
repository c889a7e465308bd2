"""The last row: at most eight keys, in letters, and words of the application."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from widgets.line import Line, join_ends, width_of
from widgets.painted import Painted

Hint = tuple[str, str]


class KeyHints(Painted):
    """Keys of the focused panel, then those that always work. Not Textual's Footer, which leaks widgets."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._own: Sequence[Hint] = ()
        self._always: Sequence[Hint] = ()
        self._words: Line = ()

    def set_hints(self, own: Sequence[Hint], always: Sequence[Hint], words: Line = ()) -> None:
        """Show these keys, without those that the application refuses (``refused_hints``)."""
        own = [hint for hint in own if hint[0] not in getattr(self.app, "refused_hints", ())]
        state = (tuple(own), tuple(always), words)
        if state != (self._own, self._always, self._words):
            self._own, self._always, self._words = state
            self.update_view()

    def update_view(self) -> None:
        if self.size.width:
            self.show_lines([hint_line(self._own, self._always, self.size.width, self._words)])

    def on_resize(self, event: events.Resize) -> None:
        self.update_view()


def hint_line(own: Sequence[Hint], always: Sequence[Hint], width: int, words: Line = ()) -> Line:
    """As many hints as fit, at most eight. The panel's own give way first, then the first of "always": the last two
    of these, help and the way out, stay."""
    width_left = width - width_of(words)
    room = max(0, 8 - len(always))
    choices = [(*own[:count], *always) for count in range(min(room, len(own)), 0, -1)]
    choices += [tuple(always[start:]) for start in range(max(1, len(always) - 1))]
    line: Line = ()
    for hints in choices:
        line = tuple(span for key, word in hints for span in ((f" {key} ", "key"), (f"{word} ", "dim")))
        if width_of(line) <= width_left:
            break
    return join_ends(line, words, width)
