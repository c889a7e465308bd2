"""Lines by byte offset: which lines begin in a block of the file, and how many line ends lie before it."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable

from sgmon.analyse.log.textfile import TextFile
from sgmon.patterns import regex

BLOCK = 16 * 1024
#: longest part of a line that is looked at: this much of its head, this much of its tail
HEAD = 32 * 1024
TAIL = 32 * 1024
#: how far the end of one line is searched
REACH = 16 * 1024 * 1024
CELLS = 4096
#: bytes past a block that a quick look takes in
OVERLAP = 2048

RawLine = tuple[int, str]  # offset, text without its line end


def raw_lines(file: TextFile, block: int, size: int) -> tuple[list[RawLine], bool]:
    """The lines that begin in this block, the last one to its end, be it in a later block; and whether it has one."""
    start = block * BLOCK
    end = min(start + BLOCK, size)
    if start >= size:
        return [], False
    if start:
        data = file.read(start - 1, end - start + 1)
        first = data.find(b"\n")
        if first < 0:
            return [], len(data) > BLOCK
        offset = start + first
        body = data[first + 1 :]
    else:
        offset = 0
        body = file.read(0, end)
    if not body:
        return [], end - start == BLOCK
    parts = body.split(b"\n")
    last = parts.pop()
    lines: list[RawLine] = []
    for part in parts:
        lines.append((offset, decode(part)))
        offset += len(part) + 1
    ended = end - start == BLOCK
    if last:
        text, ended = _long_line(file, offset, last, end, size)
        lines.append((offset, text))
    return lines, ended


def holds(file: TextFile, block: int, hint: Callable[[str], bool]) -> bool:
    """Whether ``hint`` may pass a line that begins in this block: it sees the block and what follows it at once.

    True without a look when the last line goes on too far.
    """
    data = file.read(block * BLOCK, BLOCK + OVERLAP)
    whole = data.find(b"\n", BLOCK - 1) >= 0 or len(data) < BLOCK + OVERLAP
    return not whole or hint(decode(data))


def decode(data: bytes) -> str:
    """Text of one line: invalid UTF-8 replaced, NULs (left by copytruncate) gone."""
    if b"\0" in data:
        data = data.replace(b"\0", b"")
    return data.decode("utf-8", "replace")


def _long_line(file: TextFile, offset: int, head: bytes, position: int, size: int) -> tuple[str, bool]:
    """A line that goes on past its block: its head, and its tail where the newest state of a bar stands."""
    tail = b""
    ended = False
    limit = min(size, offset + REACH)
    while position < limit:
        chunk = file.read(position, min(256 * 1024, limit - position))
        if not chunk:
            break
        stop = chunk.find(b"\n")
        part = chunk if stop < 0 else chunk[:stop]
        if len(head) < HEAD:
            take = HEAD - len(head)
            head, part = head + part[:take], part[take:]
        if part:
            tail = (tail + part)[-TAIL:]
        position += len(chunk)
        if stop >= 0:
            ended = True
            break
    if not tail:
        return decode(head), ended
    carriage = tail.find(b"\r")
    if carriage >= 0 and tail.rstrip(b"\r").find(b"\r") >= 0:
        return decode(tail[carriage + 1 :]), ended
    if not head.strip(b"\0"):
        return decode(tail), ended
    return decode(head), ended


class NewlineCounts:
    """Line ends before each block. Filled from the start of the file, a block at a time, by one thread."""

    STEP = 1024 * 1024

    def __init__(self) -> None:
        self.counted = 0  # bytes looked at
        self.newlines = 0
        self.open_line = False  # the last byte looked at ended no line
        self._before = array("Q", [0])

    def advance(self, file: TextFile, size: int) -> bool:
        """Count one more piece. False when everything up to ``size`` is counted (or cannot be read)."""
        if self.counted >= size:
            return False
        aligned = self.STEP - self.counted % self.STEP
        data = file.read(self.counted, min(aligned, size - self.counted))
        if not data:
            return False
        newlines, counted, position = self.newlines, self.counted, 0
        while position < len(data):
            stop = min(len(data), position + BLOCK - counted % BLOCK)
            newlines += data.count(b"\n", position, stop)
            counted += stop - position
            position = stop
            if counted % BLOCK == 0:
                self._before.append(newlines)
        self.open_line = data[-1] != 0x0A
        self.newlines, self.counted = newlines, counted
        return True

    def before(self, block: int) -> int | None:
        """Line ends before this block; None while not counted so far."""
        return self._before[block] if block < len(self._before) else None

    def block_of(self, number: int) -> int | None:
        """The block in which line ``number`` (from 1) begins; None when it is not known yet."""
        if number <= 1:
            return 0
        ends = number - 1  # the line begins right after this line end
        if ends > self.newlines:
            return None
        return max(0, bisect_left(self._before, ends) - 1)


_DATED = regex(r"(?<=[^\s\[])(?=\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_BAR = regex(r"\d+%(?:\|| Completed \|)|\| *\d+/\d+ \[|\d+(?:it|B) \[")


def pieces(text: str) -> list[str]:
    """One physical line as it would stand on a screen: of each bar its newest state, and what was glued to it."""
    if "\r" not in text and "[20" not in text[1:]:
        return [text]
    found: list[str] = []
    bars: dict[str, int] = {}
    for segment in text.split("\r"):
        for piece in _DATED.split(segment) if "[20" in segment else (segment,):
            if not piece.strip():
                continue
            stem = bar_stem(piece)
            if stem is None:
                found.append(piece)
            elif stem in bars:
                found[bars[stem]] = piece
            else:
                bars[stem] = len(found)
                found.append(piece)
    return found or [""]


def bar_stem(text: str) -> str | None:
    """What names a bar ("Capturing batches"), or None when the text is no bar."""
    found = _BAR.search(text)
    if found is None or text.startswith("[20"):
        return None
    return text[: found.start()].split("(")[0].split(":")[0].strip()
