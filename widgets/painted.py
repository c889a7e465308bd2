"""A widget that shows lines and sends to the terminal only the cells that changed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset, Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from widgets.line import Line, ascii_line, changed_cells, crop, plain
from widgets.styles import style_of

_SELECTED = Style(reverse=True)


class Painted(Widget):
    """Lines in named styles, one terminal row each. No markup, no wrapping, no timer."""

    DEFAULT_CSS = """
    Painted { width: 1fr; height: 1fr; background: $background; color: $foreground; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: list[Line] = []
        self._strips: dict[int, Strip] = {}
        self._strip_width = 0
        self._rows_for = Size(0, 0)
        self._named: dict[str, Style] = {}
        self._held: list[Line] | None = None  # rows that came while text was selected

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
        """Show these lines; only cells that differ from the last call are painted again."""
        if self.text_selection is not None:
            self._held = list(lines)  # selected rows stand still
            return
        width = self.size.width
        fresh = [crop(line, width) for line in lines] if width else list(lines)
        fresh = [ascii_line(line) for line in fresh] if self.ascii_only else fresh
        old = self._lines
        regions = []
        for y in range(max(len(old), len(fresh))):
            before, after = (old[y] if y < len(old) else ()), (fresh[y] if y < len(fresh) else ())
            if before == after:
                continue
            self._strips.pop(y, None)
            if y < self.size.height:
                begin, end = changed_cells(before, after, width)
                regions.append(Region(begin, y, end - begin, 1))
        self._lines = fresh
        if regions:
            self.refresh(*regions)

    def update_view(self) -> None:
        """Make the rows anew for the size there is. For subclasses."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """At a new size the rows are made before they are painted, so that no frame shows those of the old one."""
        if self.size != self._rows_for:
            self._rows_for = self.size
            self.update_view()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if width != self._strip_width:
            self._strips.clear()
            self._strip_width = width
        strip = self._strips.get(y)
        if strip is None:
            strip = self._make_strip(self._lines[y] if y < len(self._lines) else (), width)
            strip = self._strips[y] = self._marked(y, strip)
        return strip

    def _make_strip(self, line: Line, width: int) -> Strip:
        segments = [Segment(text, self.named_style(style)) for text, style in line if text]
        return Strip(segments).adjust_cell_length(width, self.named_style(""))

    # text that is selected with the mouse

    def text_offset(self, x: int, y: int) -> Offset:
        """The character of row ``y`` that cell ``x`` shows; behind the end of the row its end."""
        text = plain(self._lines[y]).rstrip() if 0 <= y < len(self._lines) else ""
        cells = 0
        for index, char in enumerate(text):
            cells += cell_len(char)
            if cells > x:
                return Offset(index, y)
        return Offset(len(text), y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        if not self._lines:
            return None
        return selection.extract(self.text + "\n "), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        if selection is None and self._held is not None:
            held, self._held = self._held, None
            self.show_lines(held)
        self.refresh()

    def _marked(self, y: int, strip: Strip) -> Strip:
        """The strip with what is selected reversed."""
        selection = self.text_selection
        span = selection.get_span(y) if selection is not None else None
        if span is None:
            return strip
        text = plain(self._lines[y]).rstrip() if y < len(self._lines) else ""
        begin, end = span[0], len(text) if span[1] < 0 else span[1]
        cuts = [cell_len(text[:begin]), cell_len(text[:end]), strip.cell_length]
        parts = list(strip.divide(cuts))
        if len(parts) < 2:
            return strip
        parts[1] = Strip([Segment(part, (style or Style()) + _SELECTED) for part, style, _ in parts[1]])
        return Strip.join(parts)

    def named_style(self, name: str) -> Style:
        """The colours of a style name ("bad", "bad+cursor") in the theme in use."""
        style = self._named.get(name)
        if style is None:
            style = self.rich_style
            for part in name.split("+"):
                no_color = self.app.no_color
                style += style_of(part, self.app.theme_variables, self.background_colors[1], no_color=no_color)
            self._named[name] = style
        return style

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._named.clear()

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines)
