"""What a stack waits in: a barrier, a collective, a lock, a compiler, the operator ... (waits.toml)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sgmon.model import Frame, StackDump
from sgmon.stacks.pattern import StackPattern, stack_pattern
from sgmon.stacks.tables import own_tables, word_list, words

FOR_RANKS = "other ranks"
FOR_GPU = "the GPU"


@dataclass(frozen=True, slots=True)
class Wait:
    """What a main thread waits in. depth: index of ``frame`` in the thread's frames (0 is innermost)."""

    kind: str
    words: str
    waits_for: str  # other ranks | the GPU | a lock | a child process | the network | the operator | requests
    frame: Frame
    depth: int

    @property
    def for_ranks(self) -> bool:
        """Whether other ranks end this wait. A wait for the GPU may be one too: collectives run there."""
        return self.waits_for == FOR_RANKS and self.kind != "launcher_poll"


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    words: str
    waits_for: str
    pattern: StackPattern


def waits_in(dump: StackDump) -> Wait | None:
    """What the main thread of ``dump`` waits in, or None: it works, or nothing is known."""
    return wait_of(dump.threads[0].frames) if dump.threads else None


def wait_of(frames: Sequence[Frame]) -> Wait | None:
    """The wait whose own frame is the innermost; of two at the same frame the more special one."""
    best: tuple[int, _Rule] | None = None
    for rule in _rules():
        depth = rule.pattern.find(frames)
        if depth is not None and (best is None or depth < best[0]):
            best = (depth, rule)
    if best is None:
        return None
    depth, rule = best
    return Wait(rule.kind, rule.words, rule.waits_for, frames[depth], depth)


@lru_cache(maxsize=1)
def _rules() -> tuple[_Rule, ...]:
    return tuple(
        _Rule(
            words(entry, "kind"),
            words(entry, "words"),
            words(entry, "for"),
            stack_pattern(" | ".join(word_list(entry, "frames"))),
        )
        for entry in own_tables("waits.toml", "wait")
    )
