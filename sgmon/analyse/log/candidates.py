"""What could be the cause of a failure: an error line, or a traceback as one block."""

from __future__ import annotations

import re

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.analyse.log.catalogue import GRADES, Rule
from sgmon.model.stacks import Frame

ROOT, EXCEPTION, KILLED, VICTIM, CUT, CONSEQUENCE, NOTICE = range(len(GRADES))


class Candidate(Struct, frozen=True):
    """One line that could be the cause."""

    kind: str
    grade: int
    line: int
    text: str
    rank: str = ""
    fatal: bool = False
    seen_t: float | None = None
    block: bool = False
    shell: bool = False
    phase: str = ""
    frames: tuple[Frame, ...] = ()  # of its traceback, innermost first
    outer: tuple[Frame, ...] = ()  # the same of the server's own process, which say nothing of the ranks
    code: str = ""  # the last source line of its traceback
    file: str = ""  # that it, or a later exception of its chain, names


class Block(Struct):
    """A traceback, from the record that opens it to the last line of its exception.

    named: the rule of the line that opens it, which says more than the exception's class. frames: outermost first.
    raised: a process ends of it, so that nothing more is waited for. chained: another traceback belongs to it, and
    follows; joined: one has followed.
    """

    line: int
    text: str
    rank: str
    fatal: bool
    seen_t: float | None
    hint: str = ""
    best: Candidate | None = None
    plain: Candidate | None = None
    quoted: Candidate | None = None  # the exception of another process in Ray's words, where its own are cut off
    complete: bool = False
    blank: bool = False
    cancelled: bool = False
    headless: bool = False
    raised: bool = False
    proven: bool = False  # one of its frames says that its process ends of it
    chained: bool = False
    joined: bool = False
    head: str = ""  # what each of its lines begins with
    repeated: bool = False  # of an error that was told before
    titled: bool = False  # of who tells of a failure, which the line above it says
    main: bool = False  # of the server's own process, whose stack says nothing of the ranks
    named: Rule | None = None
    frames: list[Frame] = field(default_factory=list)
    later: list[Frame] = field(default_factory=list)  # of the tracebacks that its first one is the cause of
    code: str = ""
    file: str = ""
    interrupted: bool = False  # somebody pressed Ctrl-C
    ended: bool = False  # its exception says no more than that somebody ended it

    def copy(self) -> Block:
        return replace(self, frames=list(self.frames), later=list(self.later))

    @property
    def is_torn(self) -> bool:
        """Whether neither its begin nor its exception is in the text, so that it tells nothing yet."""
        return self.headless and not (self.complete or self.head or self.proven)

    def candidate(self) -> Candidate:
        """What this block says about the cause."""
        made = self._candidate()
        phase = made.phase or (self.named.phase if self.named else "")
        if (self.repeated and made.grade in (EXCEPTION, CUT)) or (self.titled and made.grade == CUT):
            made = replace(made, grade=CONSEQUENCE)
        whole = (*reversed(self.frames), *reversed(self.later))
        frames, outer = ((), whole) if self.main else (whole, ())
        rank = made.rank or self.rank
        return replace(made, rank=rank, phase=phase, frames=frames, outer=outer, code=self.code, file=self.file)

    def _candidate(self) -> Candidate:
        if self.best is not None and self.named is not None and self.best.kind == self.named.name:
            return replace(self.best, line=self.line, text=self.text)  # said again by who noticed it
        if self.best is not None:
            return self.best
        if self.hint:
            return Candidate(self.hint, ROOT, self.line, self.text, self.rank, self.fatal, self.seen_t, True)
        if self.plain is not None and self.named is not None and self.named.closeness != CUT:
            return replace(self.plain, kind=self.named.name, grade=min(self.plain.grade, self.named.closeness))
        if self.plain is not None:
            return self.plain
        if self.quoted is not None:
            return self.quoted
        kind, grade = ("exception", CUT) if self.named is None else (self.named.name, self.named.closeness)
        return Candidate(kind, grade, self.line, self.text, self.rank, self.fatal, self.seen_t, True)


def snake(name: str) -> str:
    """ "AssertionError" -> "assertion_error"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def fatal_at_end(block: Block) -> Candidate:
    made = block.candidate()
    if block.fatal or made.fatal or not (block.complete or block.raised):
        return made
    # a loose traceback that nothing followed, or one of a process that ends by it
    return replace(made, fatal=True, block=True)


def is_explained(killed: Candidate, found: list[Candidate]) -> bool:
    """Whether an exit by signal only ends what an exception of that rank began: the launcher kills its own tree."""
    number = killed.rank.removeprefix("#")
    for other in found:
        if other.line >= killed.line:
            return False
        if other.block and other.fatal and (number == killed.rank or other.rank.endswith(f"TP{number}")):
            return True
    return False
