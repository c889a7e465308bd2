"""What a stack waits in: a barrier, a collective, a lock, a compiler, the operator ... (waits.toml)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sgmon.analyse.stacks.pattern import PatternIndex, stack_pattern
from sgmon.analyse.stacks.tables import own_tables, word_list, words
from sgmon.model import Frame, StackDump

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


def waits_in(dump: StackDump) -> Wait | None:
    """What the main thread of ``dump`` waits in, or None: it works, or nothing is known."""
    return wait_of(dump.threads[0].frames) if dump.threads else None


def wait_of(frames: Sequence[Frame]) -> Wait | None:
    """The wait whose own frame is the innermost; of two at the same frame the more special one."""
    rules, index = _rules()
    found = index.first(frames)
    if found is None:
        return None
    depth, rule = found[0], rules[found[1]]
    return Wait(rule.kind, rule.words, rule.waits_for, frames[depth], depth)


@lru_cache(maxsize=1)
def _rules() -> tuple[tuple[_Rule, ...], PatternIndex]:
    entries = own_tables("waits.toml", "wait")
    rules = tuple(_Rule(words(entry, "kind"), words(entry, "words"), words(entry, "for")) for entry in entries)
    patterns = [stack_pattern(" | ".join(word_list(entry, "frames"))) for entry in entries]
    return rules, PatternIndex(patterns)
