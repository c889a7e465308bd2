"""What could be the first cause of a failure is collected as the log is read; ``first_cause`` chooses.

A traceback is one block: its rank is the one of the record that opens it, its line the exception line that says
something (or the record, if the exception has no text or the end is cut).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.analyse.log.candidates import (
    CONSEQUENCE,
    EXCEPTION,
    KILLED,
    NOTICE,
    Block,
    Candidate,
    fatal_at_end,
    snake,
)
from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.prefix import Origin
from sgmon.analyse.log.records import header_exception, index_of_dead
from sgmon.analyse.log.traceback_lines import continues, take_line, take_title
from sgmon.patterns import regex
from sgmon.servers.family import LogRules

#: Blocks, candidates kept; a crash loop must not fill the memory.
LIMIT = 200
#: Python's own words above an exception that ended nothing: of a task, of a finaliser
_CAUGHT = regex(r"^future: <\w+ finished|exception was never retrieved|^Exception ignored in")
#: Lines after an error in which the server may say that it goes on, or what helps.
NEAR = 4
#: Lines after an exception in which the launcher may say that a child has failed.
FOLLOWED = 12


class Errors(Struct):
    """All candidates of one run, and the block that is open."""

    log: LogRules
    candidates: list[Candidate] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    opened: dict[str, Block] = field(default_factory=dict)  # writer -> the traceback that it is in
    writer: str = ""
    hints: dict[str, str] = field(default_factory=dict)
    previous: str = ""
    warnings: int = 0
    errors: int = 0
    interrupted_line: int | None = None  # somebody pressed Ctrl-C
    cleanup_line: int | None = None
    cleanup_t: float | None = None
    overcome: Candidate | None = None

    def copy(self) -> Errors:
        """What is immutable is shared."""
        copies = {id(block): block.copy() for block in (*self.blocks, *self.opened.values())}
        blocks = [copies[id(block)] for block in self.blocks]
        opened = {name: copies[id(block)] for name, block in self.opened.items()}
        return replace(self, candidates=list(self.candidates), blocks=blocks, opened=opened, hints=dict(self.hints))

    @property
    def open(self) -> Block | None:
        """The traceback that the writer of the next line is in."""
        return self.opened.get(self.writer)

    def close(self) -> None:
        """The open traceback has ended."""
        self.opened.pop(self.writer, None)

    def continues(self, body: str, where: Origin) -> bool:
        """Whether this text still belongs to the open block; closes it if not."""
        if self.open is None:
            return False
        if not continues(self.open, body, where, self.log):
            self.close()
            return False
        return True

    def open_block(
        self, number: int, text: str, where: Origin, seen_t: float | None, named: Rule | None = None
    ) -> None:
        """A line that begins a traceback or names the exception itself, and belongs to no open block."""
        body = text[where.body :]
        benign, begins = self.log.benign_header, body.startswith("Traceback")
        if benign.search(body) or (begins and (benign.search(self.previous) or _CAUGHT.search(self.previous))):
            block = Block(number, text, where.rank, False, seen_t, cancelled=True)
        else:
            titles = (body, self.previous) if begins else (body,)
            fatal = any(map(self.log.fatal_header.search, titles)) or (named is not None and named.fatal)
            block = Block(number, text, where.rank, fatal, seen_t)
            block.hint = self.hints.get(where.rank, "")
            block.named = named
            exception = header_exception(body) if block.fatal else ""
            if exception:
                block.plain = Candidate(
                    snake(exception), EXCEPTION, number, text, where.rank, block.fatal, seen_t, block=True
                )
                block.complete = True
            heads = self.log.heads
            block.head = text[: where.body]
            take_title(block, number, self.previous)
            again = heads is not None and bool(heads.repeats.search(self.previous))
            block.repeated = again and self._told()
            above = self.candidates[-1] if self.candidates else None  # a failure, and the traceback of who tells it
            block.titled = above is not None and (above.line, above.grade, above.rank) == (
                number - 1,
                CONSEQUENCE,
                where.rank,
            )
            block.raised = again or self.raises(block.head) or (heads is not None and where.quoted)
        last = self.blocks[-1] if self.blocks else None
        if last is not None and last.headless and not last.rank and block.fatal:
            last.fatal = True  # of another rank, whose begin is not in the text
        if len(self.opened) >= LIMIT:
            self.opened.pop(next(iter(self.opened)))
        self.opened[self.writer] = block
        if len(self.blocks) < LIMIT:
            self.blocks.append(block)
        if not block.cancelled:
            self.errors += 1

    def in_block(self, number: int, body: str, found: Iterable[Rule], seen_t: float | None) -> None:
        """A line of the open block."""
        block = self.open
        if block is None:
            return
        if take_line(block, number, body, found, seen_t, self.log):
            block.repeated = block.repeated or self._told(block)
        if block.interrupted and self.interrupted_line is None:
            self.interrupted_line = block.line

    def single(self, number: int, text: str, rank: str, rule: Rule, seen_t: float | None) -> None:
        """An error line outside of any block."""
        self.errors += 1
        rank = rank or index_of_dead(text, self.log)
        if rule.closeness == CONSEQUENCE and rule.fatal:
            self._followed(number)
        if len(self.candidates) < LIMIT:
            self.candidates.append(
                Candidate(
                    rule.name,
                    rule.closeness,
                    number,
                    text,
                    rank,
                    rule.fatal,
                    seen_t,
                    shell=rule.shell,
                    phase=rule.phase,
                )
            )

    def _followed(self, number: int) -> None:
        """The server says in line ``number`` that a child has failed: what was just raised was not caught."""
        last = self.blocks[-1] if self.blocks else None
        if (
            last is not None
            and last.plain is not None
            and not last.cancelled
            and number - last.plain.line <= FOLLOWED
        ):
            last.fatal = True

    def _told(self, but: Block | None = None) -> bool:
        """Whether an error was told before."""
        return any(block is not but and not block.cancelled for block in self.blocks) or any(
            candidate.grade < NOTICE for candidate in self.candidates
        )

    def headless(self, number: int, text: str, seen_t: float | None, rank: str = "", head: str = "") -> None:
        """The text begins inside of a traceback: its exception is all that is there of it."""
        raised = self.raises(head) or self._prints(head)
        block = Block(number, text, rank, False, seen_t, headless=True, head=head, raised=raised)
        self.opened[self.writer] = block
        self.blocks.append(block)

    def _prints(self, head: str) -> bool:
        """Whether a rank or an engine prints lines with this prefix past its logger: frames of what it ends of."""
        heads = self.log.heads
        return heads is not None and heads.prints is not None and bool(heads.prints.fullmatch(head))

    def raises(self, head: str) -> bool:
        """Whether a line with this prefix tells the exception that its process ends of."""
        heads = self.log.heads
        return heads is not None and heads.raises is not None and bool(heads.raises.search(head))

    def survived(self, number: int) -> None:
        """The server says in line ``number`` that it goes on without what has just failed."""
        kept = [c for c in self.candidates if c.fatal or c.grade >= NOTICE or number - c.line > NEAR]
        gone = [c for c in self.candidates if c not in kept]
        for block in self.blocks:
            made = block.candidate()
            if not block.fatal and not made.fatal and not block.cancelled and number - made.line <= NEAR:
                block.cancelled = True
                gone.append(made)
        if gone:
            self.candidates, self.overcome = kept, gone[0]
            self.errors = max(0, self.errors - len(gone))

    def context(self, body: str, rank: str) -> None:
        """Lines that explain the next exception of the same rank."""
        for pattern, kind in self.log.hints:
            if pattern.search(body):
                self.hints[rank] = kind

    def clean_up(self, number: int, seen_t: float | None) -> None:
        """A line by which the server ends its own processes."""
        if self.cleanup_line is None:
            self.cleanup_line, self.cleanup_t = number, seen_t

    def progress(self, rank: str | None) -> None:
        """The server went on: a loose traceback before this was caught, but not one of which another process ends.

        rank: who went on; None: a bar, which any rank may draw.
        """
        for block in self.blocks:
            if block.raised and block.rank and rank not in ("", block.rank):
                continue
            if not block.fatal and not block.cancelled and block not in self.opened.values():
                best = block.best
                if best is None or best.grade not in (KILLED, CONSEQUENCE):
                    block.cancelled = True

    def all(self) -> list[Candidate]:
        """Every candidate, blocks included, by line."""
        found = [*self.candidates]
        found += (fatal_at_end(block) for block in self.blocks if not block.cancelled and not block.is_torn)
        return sorted(found, key=lambda c: c.line)
