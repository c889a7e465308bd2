"""The text behind the log panel: lines by byte offset, described when looked at, in bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from sgmon.analyse.log.beginning import Beginning
from sgmon.analyse.log.blocks import BLOCK, CELLS, bar_stem, holds, pieces, raw_lines
from sgmon.analyse.log.envelope import Envelope
from sgmon.analyse.log.generation import Entry, Generation, Kept
from sgmon.analyse.log.lines import describe, describe_in
from sgmon.analyse.log.search import Count, Search, Survey, kind_hint
from sgmon.analyse.log.steady import SteadyLines
from sgmon.analyse.log.textfile import RegularFile, Spool
from sgmon.model import LogLine, LogReading
from sgmon.servers import registry
from sgmon.servers.family import LogRules
from sgmon.text import clean

Describe = Callable[[int, str], LogLine]
Hint = Callable[[str], bool]
KEPT_BLOCKS = 48


class LogIndex:
    """Random access to a log of any size. The engine writes (``follow``), one view reads; a thread counts lines."""

    block_bytes = BLOCK

    def __init__(self, described: Describe | None = None, *, live: bool = True, epoch: float | None = None) -> None:
        """described: in place of the description by the rules of the family. epoch: of the watch (``LogFold``)."""
        self._epoch = epoch
        self._own = described
        self.speak(registry.log_rules()[0])
        self._live = live
        self._generation: Generation | None = None
        self._wake = threading.Event()
        self._counter: threading.Thread | None = None
        self._closed = False
        self.version = 0  # differs after every change
        self.generation = 0  # differs when earlier offsets mean nothing any more
        self.path = ""
        self.identity = ""
        self.kind = ""
        self.change = ""
        self.note = ""
        self.writer_offset: int | None = None

    # what the engine calls

    def speak(self, rules: LogRules) -> None:
        """From now on lines are described by the rules of another family."""
        self.rules = rules
        self._beginning = Beginning(rules)
        self._describe = SteadyLines(self._own or self._described, rules)
        generation = getattr(self, "_generation", None)
        if generation is not None:
            with generation.lock:
                generation.blocks.clear()
            self.version += 1

    def follow(self, reading: LogReading, *, more: bool = False) -> None:
        """Take over what the log probe saw: live, the file is read when looked at; in a replay its text is kept.

        more: another piece follows at once, so that a file need not be looked at yet.
        """
        if more and not reading.change and self._fits(reading):
            return
        self.kind, self.change, self.note = reading.kind, reading.change, reading.note
        self.writer_offset = reading.writer_offset
        if self._live and reading.kind in ("file", "deleted") and self._follow_file(reading):
            pass
        elif reading.text or (self._generation is not None and reading.change in ("rotated", "truncated")):
            self._follow_text(reading)
        self.path, self.identity = reading.path, reading.identity
        self.version += 1

    def close(self) -> None:
        """End the counting thread and let go of the file."""
        self._closed = True
        self._generation = None
        self._wake.set()

    def _fits(self, reading: LogReading) -> bool:
        """Whether the file that is held is the one of the reading."""
        file = self._generation.file if self._generation is not None else None
        if not isinstance(file, RegularFile):
            return False
        return file.identity == reading.identity if reading.identity else reading.path == self.path

    def _follow_file(self, reading: LogReading) -> bool:
        generation = self._generation
        file = generation.file if generation is not None else None
        fits = self._fits(reading)
        if generation is not None and isinstance(file, RegularFile) and fits:
            size = file.size_now()
            if size >= generation.size and reading.change != "truncated":
                generation.size = size
                if not generation.counts_at_once():
                    self._wake.set()
                return True
        if reading.change == "missing":
            return True  # what is held stays readable
        try:
            file = RegularFile(reading.path)
        except OSError:
            return isinstance(file, RegularFile) and fits
        if reading.identity and file.identity != reading.identity:
            return False  # the name leads to another file by now: only the readings have the text
        self._begin(file)
        return True

    def _follow_text(self, reading: LogReading) -> None:
        generation = self._generation
        spool = generation.file if generation is not None else None
        anew = reading.change in ("rotated", "truncated", "appeared") or reading.path != self.path
        if not isinstance(spool, Spool) or (anew and spool.size):
            spool = Spool()
            spool.append(reading.text)
            self._begin(spool)
        elif generation is not None:
            spool.append(reading.text)
            generation.size = spool.size
        self._wake.set()

    def _begin(self, file: RegularFile | Spool) -> None:
        self._generation = Generation(file)
        self.speak(self.rules)
        self.generation += 1
        if self._counter is None:
            counter = threading.Thread(target=self._count, name="log-index", daemon=True)
            try:
                counter.start()
                self._counter = counter
            except RuntimeError:  # no thread is to be had now: tried again with the next file
                pass
        self._wake.set()

    def _count(self) -> None:
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            generation = self._generation
            while generation is not None and generation is self._generation:
                if not generation.count_step():
                    break
                self.version += 1

    # what the view asks

    @property
    def size(self) -> int:
        """Bytes that can be read."""
        generation = self._generation
        return generation.size if generation is not None else 0

    @property
    def blocks(self) -> int:
        """Number of blocks, the last one partly filled."""
        return (self.size + BLOCK - 1) // BLOCK

    @property
    def indexed(self) -> int:
        """Bytes whose line ends are counted."""
        generation = self._generation
        return generation.counts.counted if generation is not None else 0

    @property
    def total(self) -> int:
        """Lines counted so far, with the unfinished one at the end; exact once ``indexed`` reaches ``size``."""
        generation = self._generation
        if generation is None:
            return 0
        return generation.counts.newlines + (1 if generation.counts.open_line else 0)

    def block(self, block: int) -> list[Entry]:
        """The lines that begin in this block, described, with their offsets. Several may share an offset."""
        generation = self._generation
        if generation is None or block < 0:
            return []
        size, before = generation.size, generation.counts.before(block)
        with generation.lock:
            kept = generation.blocks.get(block)
            if kept is not None and kept.before == before and (kept.ended or kept.size == size):
                generation.blocks.move_to_end(block)
                return kept.entries
        known = kept.entries if kept is not None and kept.before == before else []
        fresh = self._read(generation, block, size, known)
        with generation.lock:
            generation.blocks[block] = fresh
            generation.blocks.move_to_end(block)
            while len(generation.blocks) > KEPT_BLOCKS:
                generation.blocks.popitem(last=False)
        return fresh.entries

    def peek(self, block: int, hint: Hint | None = None) -> Iterator[Entry]:
        """Like ``block``, kept nowhere, one by one, without the lines that ``hint`` says cannot be wanted."""
        generation = self._generation
        if generation is None or (hint is not None and not holds(generation.file, block, hint)):
            return
        raw, _ = raw_lines(generation.file, block, generation.size)
        for offset, text in raw:
            if hint is None or hint(text):
                yield from ((offset, self._line(0, piece)) for piece in self._pieces(text))

    def _read(self, generation: Generation, block: int, size: int, known: list[Entry]) -> Kept:
        raw, ended = raw_lines(generation.file, block, size)
        before = generation.counts.before(block)
        number = 0
        if raw and before is not None:
            number = before + (1 if raw[0][0] == block * BLOCK else 2)
        # All but the last known line are complete and stay as they are.
        reuse = known[: next((i for i, e in enumerate(known) if e[0] == known[-1][0]), 0)] if known else []
        reused = reuse[-1][0] if reuse else -1
        entries = list(reuse)
        for index, (offset, text) in enumerate(raw):
            if offset <= reused:
                continue
            at = number + index if number else 0
            entries.extend((offset, self._line(at, piece)) for piece in self._pieces(text))
        return Kept(size, ended, before, entries)

    def _line(self, number: int, text: str) -> LogLine:
        line = self._describe(number, text)
        if line.kind == "" and bar_stem(line.text) is not None:
            line = replace(line, kind="bar")
        if len(line.text) > CELLS or not line.text.isprintable():
            text = clean(line.text, CELLS)
            body = line.body if text[: line.body] == line.text[: line.body] else 0
            line = replace(line, text=text, body=body)
        return line

    def _pieces(self, text: str) -> list[str]:
        """As ``pieces``; a JSON object is one, whatever its text holds."""
        envelope = self._learned()
        return [text] if envelope.json is not None and text[:1] == "{" else pieces(text)

    def _described(self, number: int, text: str) -> LogLine:
        envelope = self._learned()
        if envelope.plain:
            return describe(number, text, self.rules, self._epoch)
        return describe_in(number, text, envelope, self._epoch)

    def _learned(self) -> Envelope:
        """What stands around the lines, as far as the file's beginning shows it now."""
        beginning = self._beginning  # taken before the file: a new file comes before its beginning
        generation = self._generation
        if generation is not None and beginning.learn(generation.file, generation.size):
            if beginning is not self._beginning:
                return beginning.envelope  # of a file that was replaced meanwhile
            if beginning.rules is not self.rules:
                self.speak(beginning.rules)
                return self._learned()
            with generation.lock:
                generation.blocks.clear()
        return beginning.envelope

    def offset_of(self, number: int, node: str = "") -> int | None:
        """Where line ``number`` (from 1) begins; None when it is not there or not counted yet. node: see
        ``NodesLogIndex``."""
        generation = self._generation
        if generation is None:
            return None
        block = generation.counts.block_of(number)
        if block is None:
            return None
        while block * BLOCK < generation.size:
            for offset, line in self.block(block):
                if line.number >= number:
                    return offset
            block += 1
        return None

    def line(self, number: int) -> LogLine | None:
        """Line ``number``, counted from 1, as it stands now."""
        offset = self.offset_of(number)
        if offset is None:
            return None
        found = [line for at, line in self.block(offset // BLOCK) if at == offset]
        return found[-1] if found else None

    def hint(self, kind: str) -> Hint | None:
        """A quick look that lets no line of this kind ("error", "milestone") through unseen; None: there is none."""
        return kind_hint(kind, self.rules)

    def search(self, wanted: Callable[[LogLine], bool], hint: Hint | None = None) -> Search:
        """Look for one line, in a thread of its own."""
        return Search(self, wanted, hint)

    def count(self, wanted: Callable[[LogLine], bool], hint: Hint | None = None) -> Count:
        """Find all lines that are wanted, in a thread of its own."""
        return Count(self, wanted, hint)

    def survey(self, wanted: Callable[[LogLine], bool], hint: Hint | None = None) -> Survey:
        """Find out which blocks hold lines that pass, in a thread of its own, from the end backwards."""
        return Survey(self, wanted, hint)
