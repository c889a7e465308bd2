"""A widget that shows lines and sends to the terminal only those that changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from widgets.line import Line, ascii_line, crop, plain

#: the style names that a line may use; app themes give the colours
STYLE_NAMES = (
    *("dim", "strong", "ok", "warn", "bad", "info", "accent", "key", "odd", "match"),
    *("rule", "track", "title", "title-focus", "cursor"),
    *("badge-ok", "badge-warn", "badge-bad", "badge-info", "badge-idle"),
)
_FAINT = frozenset({"dim", "rule", "track"})


class Painted(Widget):
    """Lines in named styles, one terminal row each. No markup, no wrapping, no timer."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"line--{name}" for name in STYLE_NAMES}
    DEFAULT_CSS = """
    Painted {
        width: 1fr; height: 1fr; background: $background; color: $foreground;
        .line--dim { color: $foreground 62%; }
        .line--rule { color: $foreground 35%; }
        .line--track { color: $foreground 35%; }
        .line--strong { text-style: bold; }
        .line--ok { color: $success; }
        .line--warn { color: $warning; }
        .line--odd { color: $warning; text-style: bold; }
        .line--bad { color: $error; text-style: bold; }
        .line--info { color: $primary; }
        .line--accent { color: $accent; }
        .line--key { color: $accent; text-style: bold; }
        .line--title { text-style: bold; }
        .line--title-focus { color: $accent; text-style: bold reverse; }
        .line--cursor { background: $panel; text-style: bold; }
        .line--match { color: $warning; text-style: reverse; }
        .line--badge-ok { color: $success; text-style: bold reverse; }
        .line--badge-warn { color: $warning; text-style: bold reverse; }
        .line--badge-bad { color: $error; text-style: bold reverse; }
        .line--badge-info { color: $primary; text-style: bold reverse; }
        .line--badge-idle { text-style: bold reverse; }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: list[Line] = []
        self._strips: dict[int, Strip] = {}
        self._strip_width = 0
        self._named: dict[str, Style] = {}

    @property
    def lines(self) -> list[Line]:
        """What is shown, top first."""
        return self._lines

    @property
    def text(self) -> str:
        """What is shown, without styles: for tests and for copying."""
        return "\n".join(plain(line).rstrip() for line in self._lines)

    @property
    def ascii_only(self) -> bool:
        """Whether the user asked for a screen without special glyphs."""
        return bool(getattr(self.app, "ascii_only", False))

    def show_lines(self, lines: Sequence[Line]) -> None:
        """Show these lines; only rows that differ from the last call are painted again."""
        width = self.size.width
        fresh = [crop(line, width) for line in lines] if width else list(lines)
        fresh = [ascii_line(line) for line in fresh] if self.ascii_only else fresh
        old = self._lines
        changed = [
            y
            for y in range(max(len(old), len(fresh)))
            if (old[y] if y < len(old) else None) != (fresh[y] if y < len(fresh) else None)
        ]
        self._lines = fresh
        if not changed:
            return
        for y in changed:
            self._strips.pop(y, None)
        self.refresh(*(Region(0, y, width, 1) for y in changed if y < self.size.height))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if width != self._strip_width:
            self._strips.clear()
            self._strip_width = width
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = self._make_strip(self._lines[y] if y < len(self._lines) else (), width)
        return strip

    def _make_strip(self, line: Line, width: int) -> Strip:
        segments = [Segment(text, self.named_style(style)) for text, style in line if text]
        return Strip(segments).adjust_cell_length(width, self.named_style(""))

    def named_style(self, name: str) -> Style:
        """The colours of a style name ("bad", "bad+cursor") in the theme in use."""
        style = self._named.get(name)
        if style is None:
            style = self.rich_style
            for part in name.split("+"):
                if part:
                    style += self._component_style(part)
            self._named[name] = style
        return style

    def _component_style(self, name: str) -> Style:
        style = self.get_component_rich_style(f"line--{name}", partial=True)
        background = self.background_colors[1]
        if background.ansi is not None:  # the terminal's own colours cannot be blended
            return style + Style(dim=True) if name in _FAINT else style
        color = self.get_component_styles(f"line--{name}").color
        if name not in _FAINT or color.a >= 1:
            return style
        return style + Style(color=(background + color).rich_color)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._named.clear()

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines)
