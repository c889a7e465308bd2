"""A line of text in named styles: what panels are made of before any terminal is involved.

A line is a tuple of (text, style) spans, so it can be compared, measured and tested as a value. Style names
are words such as "ok", "warn", "bad" or "dim" ("bad+cursor" adds two); a stylesheet decides what they look
like. Nothing here reads markup, so foreign text cannot become anything but text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size

Span = tuple[str, str]
Line = tuple[Span, ...]

#: our own glyphs, and under each its stand-in for terminals without it (one cell wide, both)
_GLYPHS = "─│┃…·•→←▸▶▷✓✗●○◐◆◇■□↑↓▼▲█▉▊▋▌▍▎▏░▁▂▃▄▅▆▇–—×↵≈°"
_STAND_INS = "-||..*><>>)+X@O%*=#:^VV^########._.:-=+*--x<= "
ASCII_GLYPHS = str.maketrans(_GLYPHS, _STAND_INS)
_CUT = "…"
#: the arrow between two states would be the glyph of the second
_AFTER_AN_AGE = re.compile(r"(ago|now) → ")


def plain(line: Iterable[Span]) -> str:
    """The text of a line without its styles."""
    return "".join(text for text, _ in line)


def width_of(line: Iterable[Span]) -> int:
    """Terminal cells that a line takes."""
    return sum(cell_len(text) for text, _ in line)


def ascii_line(line: Line) -> Line:
    """The line in ASCII: our glyphs have a counterpart, anything foreign becomes "?"."""
    if all(text.isascii() for text, _ in line):
        return line
    whole = plain(line)
    whole = _dotted(whole) if _CUT in whole else whole
    whole = _AFTER_AN_AGE.sub(r"\1,  ", whole)
    whole = whole.translate(ASCII_GLYPHS).encode("ascii", "replace").decode("ascii")
    out: list[Span] = []
    at = 0
    for text, style in line:
        out.append((whole[at : at + len(text)], style))
        at += len(text)
    return tuple(out)


def _dotted(text: str) -> str:
    """The text, as long as it is, with "..." where it is cut, over characters of the word that is cut."""
    chars = list(text)
    for index, char in enumerate(text):
        if char == _CUT:
            before = next((n for n in range(2) if text[: index - n][-1:].strip() == ""), 2)
            after = next((n for n in range(2) if text[index + n + 1 : index + n + 2].strip() == ""), 2)
            first, last = (index - before, index) if before else (index, index + after)
            chars[first : last + 1] = "." * (last - first + 1)
    return "".join(chars)


def restyle(line: Line, style: str) -> Line:
    """The line with ``style`` added to every span."""
    return tuple((text, f"{own}+{style}" if own else style) for text, own in line)


def crop(line: Line, width: int) -> Line:
    """At most ``width`` cells; what was cut shows as an ellipsis."""
    if width <= 0:
        return ()
    if width_of(line) <= width:
        return line
    out: list[Span] = []
    room = width - 1
    for text, style in line:
        cells = cell_len(text)
        if cells <= room:
            out.append((text, style))
            room -= cells
            continue
        out.append(((set_cell_size(text, room) if room else "") + "…", style))
        return tuple(out)
    return tuple(out)


def changed_cells(before: Line, after: Line, width: int) -> tuple[int, int]:
    """First and last (not included) cell in which two lines of ``width`` cells differ; all of them for wide text."""
    old, new = _cells(before, width), _cells(after, width)
    if old is None or new is None:
        return 0, width
    begin = next((x for x in range(width) if old[x] != new[x]), 0)
    end = next((x + 1 for x in range(width - 1, begin - 1, -1) if old[x] != new[x]), width)
    return begin, end


def _cells(line: Line, width: int) -> list[tuple[str, str]] | None:
    """(character, style) of each cell; None with wide or combining characters."""
    if any(not text.isascii() and any(cell_len(char) != 1 for char in text) for text, _ in line):
        return None
    cells = [(char, style) for text, style in line for char in text][:width]
    return cells + [(" ", "")] * (width - len(cells))


def cell(text: str, width: int, style: str = "", align: str = "left") -> Span:
    """One table cell: ``text`` cut or padded to exactly ``width`` cells."""
    cells = cell_len(text)
    if cells > width:
        cut = set_cell_size(text, max(0, width - 1)) + "…" if width > 0 else ""
        return cut, style
    gap = " " * (width - cells)
    return (gap + text if align == "right" else text + gap), style


def crop_text(text: str, width: int) -> str:
    """At most ``width`` cells of the text; a cell less than its column keeps what is cut apart from the next one."""
    return text if cell_len(text) <= width else cell(text, width)[0]


def join_ends(left: Line, right: Line, width: int, fill: Span = (" ", "")) -> Line:
    """``left`` and ``right`` at the two ends of ``width`` cells; without room ``right`` goes first."""
    right_width = width_of(right)
    left_width = width_of(left)
    if right and left_width + right_width + 1 > width:
        room = width - right_width - 1
        if room < min(left_width, width * 2 // 3):
            return crop(left, width)
        left = crop(left, room)
        left_width = width_of(left)
    gap = max(0, width - left_width - right_width)
    return (*left, (fill[0] * gap, fill[1]), *right)


def wrap(line: Line, width: int, indent: int = 0, first: int | None = None) -> list[Line]:
    """The line over several rows, broken at spaces where possible; rows after the first are indented, less where the
    indent would leave no room for words.

    ``first``: the width of the first row, when something else stands at its end.
    """
    room = width if first is None else first
    indent = min(indent, max(0, width - 8))
    if width_of(line) <= room or width < 8:
        return [crop(line, room)]
    rows: list[Line] = []
    row: list[Span] = []
    for text, style in line:
        for word in _words(text):
            cells = cell_len(word)
            if cells > room and word.strip():
                if cells > width - indent and room > width // 3:  # longer than a row: break it here
                    while cell_len(word) > room:
                        head = head_of(word, room)
                        row.append((head, style))
                        word = word[len(head) :]
                        rows.append(tuple(row))
                        row, room = [(" " * indent, "")], width - indent
                    cells = cell_len(word)
                else:
                    rows.append(tuple(row))
                    row, room = [(" " * indent, "")], width - indent
                    word = word.lstrip()
                    cells = cell_len(word)
                    while cells > room:
                        head = head_of(word, room)
                        rows.append((*row, (head, style)))
                        word = word[len(head) :]
                        cells = cell_len(word)
            if cells <= room:
                row.append((word, style))
                room -= cells
    if row:
        rows.append(tuple(row))
    return rows


def head_of(text: str, cells: int) -> str:
    """The beginning of ``text`` that fits into so many cells, one character at least."""
    used = 0
    for index, char in enumerate(text):
        used += cell_len(char)
        if used > cells:
            return text[: max(1, index)]
    return text


def _words(text: str) -> list[str]:
    """Words, each with the space before it."""
    words: list[str] = []
    start = 0
    for index in range(1, len(text)):
        if text[index] == " " and text[index - 1] != " ":
            words.append(text[start:index])
            start = index
    words.append(text[start:])
    return words


def gap_between(spans: Sequence[Span], gap: str = "  ") -> Line:
    """The spans with a gap between each two; empty ones are left out."""
    out: list[Span] = []
    for span in spans:
        if not span[0]:
            continue
        if out:
            out.append((gap, ""))
        out.append(span)
    return tuple(out)


def short_name(name: str, width: int) -> str:
    """A node's name in ``width`` cells: its end tells it from the others ("…de-17")."""
    return name if width < 2 or cell_len(name) <= width else "…" + name[-(width - 1) :]
