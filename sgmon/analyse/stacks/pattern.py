"""Patterns of frames: "function@file", chained from the inside out by " < ".

``capture`` matches any ``Class.capture``; ``EAGLEWorker.__init__`` only that; ``event_loop_*`` by its start;
``all_reduce@torch/distributed/`` only in files below that folder, ``wait@file_baton.py`` only in that file.
``a < b``: b is further out than a (a was called from it). Alternatives are separated by " | ".
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec import Struct

from sgmon.model import Frame


class FramePattern(Struct, frozen=True):
    """One frame: its function (last part, or qualified), and optionally its file or folder."""

    function: str
    file: str = ""

    def matches(self, frame: Frame) -> bool:
        return _matches(self.function, self.file, frame.function, frame.file)


class StackPattern(Struct, frozen=True):
    """Alternatives of chains of frame patterns."""

    text: str
    chains: tuple[tuple[FramePattern, ...], ...]

    def find(self, frames: Sequence[Frame]) -> int | None:
        """Index of the innermost frame of the first chain that fits; None when none does."""
        found = [index for chain in self.chains if (index := _find_chain(frames, chain)) is not None]
        return min(found, default=None)


def stack_pattern(text: str) -> StackPattern:
    """The pattern that ``text`` spells. Raises ValueError on an empty one."""
    chains = []
    for alternative in text.split(" | "):
        parts = [part.strip() for part in alternative.split(" < ")]
        if not all(parts):
            raise ValueError(f"empty frame in the stack pattern {text!r}")
        chains.append(tuple(_frame_pattern(part) for part in parts))
    return StackPattern(text, tuple(chains))


def _frame_pattern(text: str) -> FramePattern:
    function, _, file = text.partition("@")
    return FramePattern(function or "*", file)


def _find_chain(frames: Sequence[Frame], chain: tuple[FramePattern, ...]) -> int | None:
    """The innermost place where the chain's first frame fits and the others follow further out.

    Once the first frame fits somewhere, taking the innermost fit of each next one loses no match.
    """
    first: int | None = None
    at = 0
    for pattern in chain:
        while at < len(frames) and not pattern.matches(frames[at]):
            at += 1
        if at == len(frames):
            return None
        if first is None:
            first = at
        at += 1
    return first


#: of a pattern its number, and frame patterns from the inside out
_Chain = tuple[int, tuple[FramePattern, ...]]
#: frames whose patterns are kept; a server has a few hundred
KNOWN_FRAMES = 8192


class PatternIndex:
    """Many stack patterns asked at once: which one fits innermost, and of several there the first one.

    Patterns are found by the bare name of their first frame, so that a stack costs one look-up a frame.
    """

    def __init__(self, patterns: Sequence[StackPattern]) -> None:
        self._by_name: dict[str, list[_Chain]] = {}
        self._any: list[_Chain] = []
        self._known: dict[tuple[str, str], tuple[_Chain, ...]] = {}
        for number, pattern in enumerate(patterns):
            for chain in pattern.chains:
                name = chain[0].function
                group = self._any if "*" in name else self._by_name.setdefault(_bare(name), [])
                group.append((number, chain))

    def first(self, frames: Sequence[Frame]) -> tuple[int, int] | None:
        """Index of the frame and number of the pattern; None when none fits."""
        for index, frame in enumerate(frames):
            fitting = [
                number
                for number, further in self._beginning(frame)
                if not further or _follows(frames, index + 1, further)
            ]
            if fitting:
                return index, min(fitting)
        return None

    def _beginning(self, frame: Frame) -> tuple[_Chain, ...]:
        """The chains whose first frame it fits, with their further frames. Most frames fit none, and come again."""
        key = frame.function, frame.file
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= KNOWN_FRAMES:
                self._known.clear()
            chains = (*self._by_name.get(_bare(frame.function), ()), *self._any)
            found = tuple((number, chain[1:]) for number, chain in chains if chain[0].matches(frame))
            self._known[key] = found
        return found


def _follows(frames: Sequence[Frame], start: int, chain: tuple[FramePattern, ...]) -> bool:
    return _find_chain(frames[start:], chain) is not None


def _bare(name: str) -> str:
    """The last part of a qualified name: "Scheduler.run_batch" -> "run_batch", "c10d::Work::wait" -> "wait"."""
    return name.rpartition(".")[2] if "." in name else name.rpartition("::")[2]


@lru_cache(maxsize=1 << 16)
def _matches(function: str, file: str, name: str, path: str) -> bool:
    return _function(function, name) and (not file or _file(file, path))


def _function(function: str, name: str) -> bool:
    if name == function:
        return True
    if "*" in function:
        return fnmatchcase(name, function) or fnmatchcase(_bare(name), function)
    if "." in function or "::" in function:
        return name.endswith((f".{function}", f"::{function}"))
    return _bare(name) == function


def _file(file: str, path: str) -> bool:
    if file.endswith("/"):
        return path.startswith(file) or f"/{file}" in path
    if "*" in file:
        return fnmatchcase(path, file) or fnmatchcase(path, f"*/{file}")
    # py-spy may have cut the path more than the pattern does: the shorter of both decides
    return f"/{path}".endswith(f"/{file}") or (bool(path) and f"/{file}".endswith(f"/{path}"))
