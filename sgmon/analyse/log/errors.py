"""What could be the first cause of a failure is collected as the log is read; ``first_cause`` chooses.

A traceback is one block: its rank is the one of the record that opens it, its line the exception line that says
something (or the record, if the exception has no text or the end is cut).
"""

from __future__ import annotations

import re
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
)
from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.prefix import Origin
from sgmon.analyse.log.records import exception_name, header_exception, looks_like_traceback, qualified_exception
from sgmon.model.stacks import Frame
from sgmon.patterns import regex
from sgmon.servers.family import LogRules

#: exceptions by which a process or a task is ended from outside: no cause
_ENDED = frozenset({"CancelledError", "KeyboardInterrupt", "SystemExit"})
_CHAIN = ("During handling of the above", "The above exception was the direct")
#: Blocks, candidates kept; a crash loop must not fill the memory.
LIMIT = 200
#: Python's own words above an exception that ended nothing: of a task, of a finaliser
_CAUGHT = regex(r"^future: <\w+ finished|exception was never retrieved|^Exception ignored in")
#: Lines after an error in which the server may say that it goes on, or what helps.
NEAR = 4
#: Lines after an exception in which the launcher may say that a child has failed.
FOLLOWED = 12
_FRAME = regex(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+),? in (?P<function>[^\s^]+)')
_MARKS = regex(r"[\s~^]+$")  # Python 3.11 marks the part of a source line that failed
#: a file that an exception names: a path, or a name with the ending of a model's files
_FILE = regex(
    r"(?<![\w./-])(/[\w./+@=-]+\.\w{1,12}|[\w.-]+\.(?:json|safetensors|model|bin|gguf|txt|jinja|yaml|pt|pth))(?![\w/])"
)
_QUOTED = regex(r"(?:ray\.exceptions\.)?RayTaskError\((?P<name>\w+)\): ")


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
        blocks = [replace(block) for block in self.blocks]
        copies = {id(old): new for new, old in zip(blocks, self.blocks, strict=True)}
        opened = {name: copies.get(id(block)) or replace(block) for name, block in self.opened.items()}
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
        block = self.open
        if block is None:
            return False
        if not body.strip():
            block.blank = True
            return True
        opens = "Traceback (most recent call last)" in body
        chained = body.startswith(_CHAIN)
        if opens and block.complete and not block.chained and self.log.heads is not None:
            self.close()  # of another process, or the end of this one
            return False
        block.chained = chained or (block.chained and not opens)
        block.joined = block.joined or chained
        if chained or (looks_like_traceback(body) and not where.source):
            block.blank = False
            return True
        left = block.blank and not body[:1].isspace() and (block.complete or not exception_name(body))
        if where.source or left or opens:
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
            fatal = bool(self.log.fatal_header.search(body)) or (named is not None and named.fatal)
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
        name = exception_name(body)
        if not name and block is not None and block.frames and block.plain is None:
            name = qualified_exception(body)
        frame = _FRAME.match(body) if block is not None else None
        if frame and block is not None and block.plain is not None:
            if block.joined and block.frames and len(block.later) < LIMIT:
                block.later.append(Frame(frame["function"], frame["file"], int(frame["line"])))
        elif frame and block is not None and len(block.frames) < LIMIT:
            self._frame(block, body)
            made = Frame(frame["function"], frame["file"], int(frame["line"]))
            block.frames.insert(0 if "Fatal Python error" in block.text else len(block.frames), made)
            if len(block.frames) == 1 and made.function == "<module>" and not block.headless:
                block.raised = True  # nothing of the program is left to catch it
        if block is None or not body.strip():
            return
        if self.log.heads is not None and self.log.heads.last_frame.search(body):
            block.main, block.fatal, block.repeated = True, True, block.repeated or self._told(block)
        if not frame and block.plain is None and body[:1].isspace() and not _MARKS.match(body):
            block.code = body.strip()
            called = self.log.calls.search(body) if self.log.calls is not None and block.frames else None
            if called:
                block.frames.append(Frame(called[1], block.frames[-1].file, block.frames[-1].line))
        if name and not block.file:
            block.file = next(iter(_FILE.findall(body)), "")
        message = body.partition(":")[2].strip() if name else ""
        for rule in found:
            rank = block.rank or self._died(body)
            if block.best is None or rule.closeness < block.best.grade:
                block.best = Candidate(
                    rule.name, rule.closeness, number, body, rank, block.fatal, seen_t, True, phase=rule.phase
                )
        other = _QUOTED.match(body) if "RayTaskError(" in body else None
        if other and block.quoted is None:
            kind = snake(other["name"])
            block.quoted = Candidate(kind, EXCEPTION, number, body, block.rank, block.fatal, seen_t, True)
        if name in _ENDED and block.plain is None:
            self._ended(block, name)
            return
        if name and block.plain is None:
            block.cancelled, block.ended = block.cancelled and not block.ended, False
            line, text = (number, body) if message or block.headless else (block.line, block.text)
            block.plain = Candidate(snake(name), EXCEPTION, line, text, block.rank, block.fatal, seen_t, True)
        if name:
            block.complete = True

    def _ended(self, block: Block, name: str) -> None:
        """The exception of the open block is how it was ended; a later one of its chain may be more."""
        block.ended = block.ended or not block.cancelled
        block.complete = block.cancelled = True
        if name == "KeyboardInterrupt" and self.interrupted_line is None:
            self.interrupted_line = block.line

    def _frame(self, block: Block, body: str) -> None:
        """What a frame tells of the fate of its process."""
        if self.log.ends is not None and self.log.ends.search(body):
            block.fatal = block.proven = True
        elif (
            not (block.fatal or block.frames or block.headless)
            and self.log.caught is not None
            and self.log.caught.search(body)
        ):
            block.cancelled = True

    def single(self, number: int, text: str, rank: str, rule: Rule, seen_t: float | None) -> None:
        """An error line outside of any block."""
        self.errors += 1
        rank = rank or self._died(text)
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

    def _died(self, text: str) -> str:
        """ "#1" for the process of that index in the launch list (not always the rank of that number)."""
        died = self.log.died.search(text)
        number = None if died is None else next((v for n, v in died.groupdict().items() if v and n != "pid"), None)
        return f"#{number}" if number is not None else ""

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


def snake(name: str) -> str:
    """ "AssertionError" -> "assertion_error"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
