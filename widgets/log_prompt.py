"""The one-line prompt of a search, painted by its panel."""

from __future__ import annotations

from textual import events

from sgmon.text import clean
from widgets.line import Line


class Prompt:
    """Text being typed. ``key`` takes a key and says whether it was one of its own."""

    def __init__(self) -> None:
        self.open = False
        self.text = ""
        self.kept: list[str] = []
        self._back = 0

    def start(self) -> None:
        self.open, self.text, self._back = True, "", 0

    def key(self, event: events.Key) -> str:
        """ "typed", "enter", "escape" or "" for a key that is not for a prompt."""
        if event.key in ("enter", "escape"):
            self.open = False
            if event.key == "enter" and self.text and self.text not in self.kept[-1:]:
                self.kept.append(self.text)
            return event.key
        if event.key in ("backspace", "ctrl+h"):
            if not self.text:
                self.open = False
                return "escape"
            self.text = self.text[:-1]
        elif event.key == "ctrl+u":
            self.text = ""
        elif event.key == "ctrl+w":
            self.text = self.text.rstrip().rpartition(" ")[0]
        elif event.key in ("up", "down"):
            self._recall(1 if event.key == "up" else -1)
        elif event.is_printable and event.character:
            self.text += event.character
        else:
            return ""
        return "typed"

    def paste(self, text: str) -> None:
        self.text += clean(text.split("\n", 1)[0], 400)

    def _recall(self, step: int) -> None:
        self._back = max(0, min(len(self.kept), self._back + step))
        self.text = self.kept[-self._back] if self._back else ""

    def line(self) -> Line:
        hint = "   text or regex, ! inverts, enter, esc" if len(self.text) < 12 else ""
        return (("/", "key"), (clean(self.text), "strong"), ("█", ""), (hint, "dim"))
