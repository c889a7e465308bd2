"""What a stack waits in: a barrier, a collective, a lock, a compiler, the operator (waits.toml)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct

from sgmon.analyse.memo import WeakMemo
from sgmon.analyse.stacks.pattern import PatternIndex, stack_pattern
from sgmon.model import Frame, RankStack, StackDump, WaitKind
from sgmon.model.rank import PEER_WAITS
from sgmon.servers.family import StackRules
from sgmon.tables import parse_rows, text_of

FILE = "waits.toml"


class WaitRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of ``waits.toml``; the file says what the fields mean."""

    name: str
    words: str
    kind: WaitKind
    frames: tuple[str, ...]
    setup: bool = False


class StackWait(Struct, frozen=True):
    """What a main thread waits in. frame: the wait's own; depth: its index in the thread's frames (0 is innermost).

    setup: the groups of ranks are being made, so the missing one may be on another node.
    """

    name: str
    kind: WaitKind
    words: str
    frame: Frame
    depth: int
    setup: bool = False

    @property
    def for_ranks(self) -> bool:
        """Whether other ranks end this wait. A wait for the GPU may be one: collectives run there."""
        return self.kind in PEER_WAITS


_waits: WeakMemo[StackWait | None] = WeakMemo()
_read: WeakMemo[RankStack | None] = WeakMemo()


def read_stacks(dumps: Sequence[StackDump], rules: StackRules) -> RankStack | None:
    """What the newest usable dump of one process shows; moving when its samples differ. None without a usable one."""
    return _read.get(dumps, rules, lambda: _read_stacks(dumps, rules))


def _read_stacks(dumps: Sequence[StackDump], rules: StackRules) -> RankStack | None:
    usable = [dump for dump in dumps if dump.threads and not dump.error]
    if not usable:
        return None
    samples = {tuple((frame.function, frame.line) for frame in dump.threads[0].frames) for dump in usable}
    moving = len(samples) > 1
    frames = usable[-1].threads[0].frames
    wait = waits_in(usable[-1], rules)
    if wait is None:
        return RankStack(frame=frames[0].function if frames else "", works=True, moving=moving)
    where = f"{wait.frame.function} ({wait.frame.file})" if wait.frame.file else wait.frame.function
    return RankStack(wait.kind, where, wait.words, moving=moving)


def waits_in(dump: StackDump, rules: StackRules) -> StackWait | None:
    """What the main thread of ``dump`` waits in, or None: it works, or nothing is known."""
    if not dump.threads:
        return None
    return _waits.get((dump,), rules, lambda: wait_of(dump.threads[0].frames, rules))


def wait_of(frames: Sequence[Frame], rules: StackRules) -> StackWait | None:
    """The wait whose own frame is the innermost; of two at the same frame the first one in the tables."""
    rows, index = _compiled(rules.folder)
    found = index.first(frames)
    if found is None:
        return None
    depth, row = found[0], rows[found[1]]
    return StackWait(row.name, row.kind, row.words, frames[depth], depth, row.setup)


@lru_cache(maxsize=8)
def _compiled(folder: str) -> tuple[tuple[WaitRow, ...], PatternIndex]:
    """The rows of a family, then the general ones."""
    rows = tuple(
        row
        for package in (folder, "sgmon.analyse.stacks")
        if package
        for row in parse_rows(text_of(package, FILE), "wait", WaitRow, f"{package}/{FILE}")
    )
    return rows, PatternIndex([stack_pattern(" | ".join(row.frames)) for row in rows])
