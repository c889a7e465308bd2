"""Stacks: one dump, and many merged into classes."""

from __future__ import annotations

from msgspec import Struct

from sgmon.model.roles import Role
from sgmon.model.verdict import Missing


class Frame(Struct, frozen=True):
    """One Python (or native) frame. file is shortened to the package-relative path."""

    function: str
    file: str = ""
    line: int | None = None
    native: bool = False


class Thread(Struct, frozen=True):
    """One thread, innermost frame first. ``active`` is py-spy's guess and is not to be believed."""

    tid: int | None
    name: str = ""
    active: bool = False
    owns_gil: bool = False
    frames: tuple[Frame, ...] = ()


class StackDump(Struct, frozen=True, weakref=True):
    """One py-spy dump of one process, or why there is none. command: what was run, to copy.

    sample: 0 for the first of its request. request: the number of ``StacksReading.request``.
    """

    pid: int
    rank: str
    role: Role
    t: float
    took_s: float | None = None
    threads: tuple[Thread, ...] = ()
    command: str = ""
    error: str = ""
    missing: tuple[Missing, ...] = ()
    native: bool = False
    sample: int = 0
    request: int = 0


class StacksReading(Struct, frozen=True):
    """The new dumps of one request: each is in one reading. why: "key d", "key D", "auto: suspect".

    done: all of its dumps are there. Requests are answered one after the other, in the order of their numbers.
    """

    request: int
    why: str
    dumps: tuple[StackDump, ...] = ()
    done: bool = True


class StackClass(Struct, frozen=True):
    """Ranks that are in the same place, over all samples. frames innermost first.

    outlier: the others wait for these ranks, as far as stacks alone can tell. moving: the samples differ.
    """

    ranks: tuple[str, ...]
    frames: tuple[Frame, ...]
    moving: bool = False
    outlier: bool = False
    note: str = ""


class StackChange(Struct, frozen=True):
    """What the main thread of a process did since its dump before. was, now: its innermost functions, if it moved."""

    pid: int
    rank: str
    role: Role
    words: str
    was: str = ""
    now: str = ""


class StackView(Struct, frozen=True):
    """What the dumps of one request show together."""

    request: int
    classes: tuple[StackClass, ...] = ()
    changes: tuple[StackChange, ...] = ()


class CauseSource(Struct, frozen=True):
    """What a cause was read from. kind: stack | ras | log | process | port. rank: of a stack or a process.

    t: watch seconds when a stack or NCCL's answer was taken; None: the others are read anew all the time.
    """

    kind: str
    rank: str = ""
    t: float | None = None


class CauseHit(Struct, frozen=True):
    """An entry of the cause book that fits what is seen. confidence 0..1 is a judgement of the book's author.

    ranks: where it was seen, () when only the log or NCCL reported it. by_user: from the user's own book.
    sources: links to documents. read_from: what the conditions were read from.
    """

    id: str
    title: str
    confidence: float
    ranks: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    advice: str = ""
    command: str = ""
    sources: tuple[str, ...] = ()
    slow: bool = False  # explains slowness: no hang
    by_user: bool = False
    read_from: tuple[CauseSource, ...] = ()
