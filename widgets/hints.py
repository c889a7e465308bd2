"""The last row: at most eight keys, in letters, and words of the application."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from widgets.line import Line, join_ends, width_of
from widgets.painted import Painted

Hint = tuple[str, str]
#: how a key is shown -> how Textual calls it
_NAMES = {
    "↵": "enter", "↑": "up", "↓": "down", "←": "left", "→": "right", "esc": "escape", "?": "question_mark",
    ":": "colon", "/": "slash", ".": "full_stop", "+": "plus", "-": "minus", "[": "left_square_bracket",
    "]": "right_square_bracket", "&": "ampersand", "!": "exclamation_mark",
}  # fmt: skip


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

    def on_click(self, event: events.Click) -> None:
        """A click on a key presses it."""
        key = key_at(shown_hints(self._own, self._always, self.size.width, self._words), event.x)
        if key and not self.screen.selections:  # the end of a drag is no click
            self.app.call_later(self.app.simulate_key, key)


def key_at(hints: Sequence[Hint], x: int) -> str:
    """The key of the hint at cell ``x``, by Textual's name; of two keys in one hint ("+-") the one below the pointer,
    left of its words. "" where there is none."""
    begin = 0
    for shown, word in hints:
        end = begin + width_of(_spans(shown, word))
        if begin <= x < end:
            several = len(shown) > 1 and all(char in _NAMES for char in shown)
            one = shown[min(max(0, x - begin - 1), len(shown) - 1)] if several else shown
            return _NAMES.get(one, one)
        begin = end
    return ""


def _spans(key: str, word: str) -> Line:
    return (f" {key} ", "key"), (f"{word} ", "dim")


def hint_line(own: Sequence[Hint], always: Sequence[Hint], width: int, words: Line = ()) -> Line:
    """The hints that fit, and the application's words at the right end."""
    line = tuple(span for hint in shown_hints(own, always, width, words) for span in _spans(*hint))
    return join_ends(line, words, width)


def shown_hints(own: Sequence[Hint], always: Sequence[Hint], width: int, words: Line = ()) -> tuple[Hint, ...]:
    """As many hints as fit, at most eight. The panel's own give way first, then the first of "always": the last two
    of these, help and the way out, stay."""
    width_left = width - width_of(words)
    room = max(0, 8 - len(always))
    choices = [(*own[:count], *always) for count in range(min(room, len(own)), 0, -1)]
    choices += [tuple(always[start:]) for start in range(max(1, len(always) - 1))]
    return next(
        (hints for hints in choices if sum(width_of(_spans(*hint)) for hint in hints) <= width_left), choices[-1]
    )
