"""``?``: all keys, made from the bindings themselves, and what the marks mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.binding import Binding, BindingType

from sgmon.model import STATES, Snapshot
from tui_app.lines_screen import LinesScreen
from widgets.line import Line, cell, wrap
from widgets.log_messages import HELD_BACK
from widgets.states import state_style

_KEY_NAMES = {
    "question_mark": "?",
    "comma": ",",
    "colon": ":",
    "slash": "/",
    "space": "space",
    "exclamation_mark": "!",
    "ampersand": "&",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "full_stop": ".",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "left": "←",
    "right": "→",
    "escape": "esc",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "enter": "enter",
}
_STATE_WORDS = {
    "waiting": "no server seen yet",
    "progressing": "activity within the usual quiet time",
    "slow": "makes progress, but past the usual time of this phase",
    "will-fail": "goes on, and cannot get ready; the headline says why",
    "waiting-by-design": "a gate, a peer that is not started, another process's build lock",
    "suspect": "no activity for longer than usual; evidence is being taken",
    "stalled": "no progress, and the pattern is that of a hang",
    "stopped": "a worker is stopped by a signal or a debugger",
    "crashed": "a worker is gone, or the log names a fatal error",
    "ended": "somebody asked it to end, and it does or has",
    "ready": "the ready line, and /health answers 200",
    "unhealthy": "was ready, and /health says otherwise",
    "unknown": "what is missing is named",
    "unfinished": "only for a log read after the fact",
}


_STATES_WIDTH = 25
_MARKS = (
    "✓ done  ▶ now  · not yet",
    "! differs from the other ranks    ~ inferred, not read",
    "? could not be measured    not permitted: enter on the worker says what would help",
)


class HelpScreen(LinesScreen):
    """Generated from the key bindings."""

    STEM = "help"

    def __init__(self, sections: Sequence[tuple[str, Sequence[BindingType]]]) -> None:
        super().__init__()
        self.sections = sections

    def title_line(self, snapshot: Snapshot) -> Line:
        words = getattr(self.app, "LIMITS", "no key here stops, kills or changes anything in the server")
        return ((" help ", "title-focus"), (f"  {words}", "dim"))

    def page_lines(self, snapshot: Snapshot, width: int) -> Sequence[Line]:
        rows: list[Line] = []
        for name, bindings in self.sections:
            rows += [((f" {name}", "title"),), *binding_lines(bindings, width), ()]
        rows.append(((" states", "title"),))
        for state in STATES:
            look = state_style(state)
            name = cell(f"   {look.glyph} {look.word}", _STATES_WIDTH, look.text_style)
            rows += wrap((name, (_STATE_WORDS.get(state, ""), "")), width, indent=_STATES_WIDTH)
        rows += [
            (),
            ((" marks", "title"),),
            *(wrapped for words in _MARKS for wrapped in wrap(((f"   {words}", ""),), width, indent=3)),
            (),
        ]
        title, _, rest = HELD_BACK.partition("\n")
        rows.append(((f" {title}", "title"),))
        for paragraph in rest.strip().split("\n\n"):
            rows += wrap((("   " + " ".join(paragraph.split()), ""),), width, indent=3)
            rows.append(())
        return rows


def key_names(binding: Binding) -> str:
    """The keys of a binding as they are written: "? f1"."""
    return " ".join(_KEY_NAMES.get(key, key) for key in binding.key.split(","))


def binding_lines(bindings: Iterable[BindingType], width: int) -> list[Line]:
    """One row per binding, in two columns where there is room."""
    items = [(key_names(one), one.description) for one in bindings if isinstance(one, Binding) and one.description]
    first = 5 + max((len(keys) for keys, _ in items), default=12)
    if width < 110:
        return [(cell(f"   {keys}", first, "strong"), (words, "")) for keys, words in items]
    half = (len(items) + 1) // 2
    column = (width - 2) // 2
    rows: list[Line] = []
    for index in range(half):
        keys, words = items[index]
        row: Line = (cell(f"   {keys}", first, "strong"), cell(words, column - first))
        if index + half < len(items):
            keys, words = items[index + half]
            row = (*row, cell(f"   {keys}", first, "strong"), (words, ""))
        rows.append(row)
    return rows
