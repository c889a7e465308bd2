"""A row of the log as a line of spans: gutter, time, rank, message, and who printed it."""

from __future__ import annotations

from msgspec import Struct
from rich.cells import cell_len

from sgmon.units import duration, plural, rank_list
from widgets.line import Line, Span, cell, crop, restyle, short_name
from widgets.log_filter import Pattern
from widgets.log_rows import Row, is_error, is_milestone, is_warning
from widgets.log_window import Placed

RANK_STYLES = 8
GUTTER = 3
CLOCKS = ("clock", "since", "none")


class RowFormat(Struct, frozen=True):
    """How rows are painted."""

    width: int = 80
    x: int = 0  # cells scrolled to the right
    clock: str = "clock"
    first_t: float | None = None
    rank_width: int = 5
    expected: tuple[str, ...] = ()
    pattern: Pattern | None = None
    wraps: bool = False
    milestones: frozenset[int] | None = None  # numbers of the lines that are milestones; None: as described
    node_width: int = 0  # 0: the log of one machine

    @property
    def has_clock(self) -> bool:
        """Whether there is a column for the time."""
        return self.clock != "none" and self.width >= 50

    @property
    def lead(self) -> int:
        """Cells before the message."""
        return (
            GUTTER
            + (9 if self.has_clock else 0)
            + sum(width + 1 for width in (self.node_width, self.rank_width) if width)
        )

    @property
    def room(self) -> int:
        """Cells for the message."""
        return max(8, self.width - self.lead)


def paint_row(placed: Placed, row_format: RowFormat, cursor: bool = False) -> Line:
    """The whole row, as wide as the row_format."""
    row = placed.row
    if row.kind == "gap":
        line = crop(rule(gap_words(row), row_format.width, "warn"), row_format.width)
    elif row.kind in ("noise", "frames"):
        line = crop(_hidden(row, row_format), row_format.width)
    else:
        line = _line(placed, row_format)
    if cursor:
        line = restyle((("▸", ""), *_without_first_cell(line)), "cursor")
        fill = row_format.width - sum(cell_len(text) for text, _ in line)
        if fill > 0:
            line = (*line, (" " * fill, "cursor"))
    return line


def gap_words(row: Row) -> str:
    """ "4m12s silence"."""
    return f"{duration(row.quiet_s)} " + ("without a dated line" if row.broken else "silence")


def rule(words: str, width: int, style: str) -> Line:
    """Words in the middle of a rule."""
    rest = max(4, width - cell_len(words) - 2)
    return (("─" * (rest // 2), "rule"), (f" {words} ", style), ("─" * (rest - rest // 2), "rule"))


def _hidden(row: Row, row_format: RowFormat) -> Line:
    """How many lines are not shown, and the key that shows them."""
    blank = " " * (row_format.lead - GUTTER)
    if row.kind == "frames":
        words = f"  ... {plural(row.count, 'line')} of traceback (enter shows)"
        return ((" ", ""), ("┃", "bad"), (f" {blank}", ""), (words, "dim"))
    words = plural(row.count, "known harmless line" if row.line.kind == "noise" else "access or harmless line")
    return ((f" · {blank}", "dim"), (f"{words} (f shows)", "dim"))


def _line(placed: Placed, row_format: RowFormat) -> Line:
    row = placed.row
    head = _lead(placed, row_format)
    tail = suffix(row, row_format.expected) if placed.piece == 0 else ()
    tail_width = sum(cell_len(text) for text, _ in tail)
    style = message_style(row, row_format)
    text = placed.text
    if row_format.wraps:
        return (*head, *_marked(text, style, row_format.pattern), *tail)
    if row_format.x:
        text = _from_cell(text, row_format.x)
    room = max(4, row_format.room - tail_width)
    cells = cell_len(text)
    if cells > room:
        text = cell(text, room)[0]
        cells = room
    gap: Line = ((" " * (room - cells), ""),) if tail and room > cells else ()
    return (*head, *_marked(text, style, row_format.pattern), *gap, *tail)


def _lead(placed: Placed, row_format: RowFormat) -> Line:
    row = placed.row
    first = placed.piece == 0
    mark, style = gutter(row, row_format) if first else ("│", "rule")
    spans: list[Span] = [(" ", ""), (mark, style), (" ", "")]
    if row_format.has_clock:
        spans.append((f"{_clock(row, row_format) if first else '':>8} ", "dim"))
    if row_format.node_width:
        node = row.line.node if first and row.count < 2 else ""
        spans += [cell(short_name(node, row_format.node_width), row_format.node_width, "dim"), (" ", "")]
    if row_format.rank_width:
        ranks = rank_list(row.ranks) if first else ""
        colour = rank_style(row.ranks[0]) if len(row.ranks) == 1 else "strong"
        spans += [cell(ranks, row_format.rank_width, colour), (" ", "")]
    return tuple(spans)


def _clock(row: Row, row_format: RowFormat) -> str:
    if row_format.clock == "since" and row_format.first_t is not None:
        return "" if row.line.t is None else f"+{duration(row.line.t - row_format.first_t)}"
    return row.clock


def shows_milestone(row: Row, row_format: RowFormat) -> bool:
    """Whether the row is a milestone of this start. Seen alone, a second warm-up request looks like one too."""
    line = row.line
    if not is_milestone(line):
        return False
    return row_format.milestones is None or not line.number or line.number in row_format.milestones


def gutter(row: Row, row_format: RowFormat) -> Span:
    """The mark of a row: milestones and errors can be found by eye."""
    line = row.line
    if line.kind == "traceback":
        return "┃", "bad"
    if is_error(line):
        return "✗", "bad"
    if shows_milestone(row, row_format):
        return "◆", "accent"
    if line.kind == "bar":
        return "▷", "info"
    if is_warning(line):
        return "!", "warn"
    if line.kind in ("noise", "access"):
        return "·", "dim"
    return " ", ""


def message_style(row: Row, row_format: RowFormat) -> str:
    """The style of the message itself."""
    line = row.line
    if line.kind == "traceback":
        return "bad-soft"
    if is_error(line):
        return "bad"
    if shows_milestone(row, row_format):
        return "strong"
    if line.kind == "bar":
        return "info"
    if is_warning(line):
        return "warn"
    return "dim" if line.kind in ("noise", "access") else ""


def suffix(row: Row, expected: tuple[str, ...]) -> Line:
    """ "x8", or "x7, not TP5", for lines that several ranks printed."""
    if row.count < 2:
        return ()
    sign = "≈" if row.similar else "×"
    missing = [rank for rank in expected if rank not in row.ranks]
    later = [rank for rank in missing if rank in row.late]
    never = [rank for rank in missing if rank not in row.late]
    spans: list[Span] = [(f" {sign}{row.count}", "strong")]
    if len(missing) < len(row.ranks):
        if later:
            spans.append((f", {rank_list(later)} later", "warn"))
        if never:
            spans.append((f", not {rank_list(never)}", "odd"))
    return tuple(spans)


def rank_style(rank: str) -> str:
    """The colour of a rank, by its last number."""
    digits = "".join(c if c.isdigit() else " " for c in rank).split()
    return f"rank{int(digits[-1]) % RANK_STYLES}" if digits else "rank0"


def _marked(text: str, style: str, pattern: Pattern | None) -> Line:
    """The text with every hit of the search marked."""
    if pattern is None or pattern.inverse or not text:
        return ((text, style),)
    spans: list[Span] = []
    position = 0
    for hit in pattern.regex.finditer(text):
        if hit.end() == hit.start():
            continue
        if hit.start() > position:
            spans.append((text[position : hit.start()], style))
        spans.append((hit[0], "match"))
        position = hit.end()
    spans.append((text[position:], style))
    return tuple(span for span in spans if span[0])


def _from_cell(text: str, x: int) -> str:
    if text.isascii():
        return text[x:]
    used = 0
    for index, char in enumerate(text):
        if used >= x:
            return text[index:]
        used += cell_len(char)
    return ""


def _without_first_cell(line: Line) -> Line:
    (text, style), *rest = line
    return ((text[1:], style), *rest)
