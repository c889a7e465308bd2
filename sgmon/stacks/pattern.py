"""Patterns of frames: "function@file", chained from the inside out by " < ".

``capture`` matches any ``Class.capture``; ``EAGLEWorker.__init__`` only that; ``event_loop_*`` by its start;
``all_reduce@torch/distributed/`` only in files below that folder, ``wait@file_baton.py`` only in that file.
``a < b``: b stands somewhere outside of a. Alternatives are separated by " | ".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sgmon.model import Frame


@dataclass(frozen=True, slots=True)
class FramePattern:
    """One frame: its function (last part, or qualified), and optionally its file or folder."""

    function: str
    file: str = ""

    def matches(self, frame: Frame) -> bool:
        return self._function(frame.function) and (not self.file or self._file(frame.file))

    def _function(self, name: str) -> bool:
        if name == self.function:
            return True
        last = name.rpartition(".")[2] if "." in name else name.rpartition("::")[2]
        if "*" in self.function:
            return fnmatchcase(name, self.function) or fnmatchcase(last, self.function)
        if "." in self.function or "::" in self.function:
            return name.endswith((f".{self.function}", f"::{self.function}"))
        return last == self.function

    def _file(self, path: str) -> bool:
        if self.file.endswith("/"):
            return path.startswith(self.file) or f"/{self.file}" in path
        if "*" in self.file:
            return fnmatchcase(path, self.file) or fnmatchcase(path, f"*/{self.file}")
        # py-spy may have cut the path more than the pattern does: the shorter of both decides
        return f"/{path}".endswith(f"/{self.file}") or (bool(path) and f"/{self.file}".endswith(f"/{path}"))


@dataclass(frozen=True, slots=True)
class StackPattern:
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
