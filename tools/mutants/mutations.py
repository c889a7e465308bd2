"""The mutants of a source file. The operators are mutmut's, over libcst.

mutmut itself mutates no decorated function and nothing outside of functions; here both are mutated: half of the
families are tables, and many readings are properties. Left out is what no test should hold: docstrings, annotations,
decorators, imports, the arguments of a class (``frozen=True``), and changes of nothing but the case of letters.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider
from mutmut.mutation.file_mutation import MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

#: The place of a hunk in the new file: its first line, and how many they are (1 where that is left out).
_HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")
#: Of a changed node, as many characters are told.
_TOLD = 110


@dataclass(frozen=True)
class Mutant:
    """One change of one place. path: from the root of the project. number: its place among the mutants of its line.
    kind: what was changed. before, after: the text around the change. outside: it stands outside of functions.
    make: gives the whole file with the change."""

    path: str
    line: int
    number: int
    kind: str
    before: str
    after: str
    outside: bool
    make: Callable[[], str] = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line}#{self.number}"


class _Places(MutationVisitor):  # type: ignore[misc]
    """Collects mutmut's mutations, and of each its line and whether it stands outside of functions."""

    METADATA_DEPENDENCIES = (*MutationVisitor.METADATA_DEPENDENCIES, ParentNodeProvider)

    def __init__(self) -> None:
        super().__init__(mutation_operators, IgnoredCode(set(), set(), set()))
        self.places: list[tuple[int, bool]] = []
        self._depth = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        self._depth += isinstance(node, cst.FunctionDef)
        return bool(super().on_visit(node))

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self._depth -= isinstance(original_node, cst.FunctionDef)
        super().on_leave(original_node)

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef):
            return False
        if isinstance(node, (cst.Decorator, cst.ImportFrom, cst.Import)):
            return True
        if isinstance(node, cst.Arg) and isinstance(self.get_metadata(ParentNodeProvider, node), cst.ClassDef):
            return True
        return bool(super()._skip_node_and_children(node))

    def _create_mutations(self, node: cst.CSTNode) -> None:
        known = len(self.mutations)
        super()._create_mutations(node)
        self.mutations[known:] = [
            m for m in self.mutations[known:] if not _case_only(m.original_node, m.mutated_node)
        ]
        if made := len(self.mutations) - known:
            line = self.get_metadata(PositionProvider, node).start.line
            self.places += [(line, self._depth == 0)] * made


def _case_only(before: cst.CSTNode, after: cst.CSTNode) -> bool:
    texts = isinstance(before, cst.SimpleString) and isinstance(after, cst.SimpleString)
    return texts and before.value.lower() == after.value.lower()


def _kind(node: cst.CSTNode) -> str:
    if isinstance(node, cst.SimpleString):
        return "text"
    if isinstance(node, cst.BaseNumber):
        return "number"
    if isinstance(node, cst.Call):
        return "argument"
    if isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
        return "assignment"
    return "condition or operator"


def _differing(before: str, after: str) -> tuple[str, str]:
    """Both texts in one line, cut to the part around the first difference."""
    before, after = (" ".join(text.split()) for text in (before, after))
    same = next((at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), 0)
    start = max(0, same - _TOLD // 2)
    return before[start : start + _TOLD], after[start : start + _TOLD]


class File:
    """The mutants of one file by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        wrapper = MetadataWrapper(cst.parse_module(path.read_text()))
        self._module = wrapper.module
        found = _Places()
        wrapper.visit(found)
        self._by_line = defaultdict(list)
        for mutation, (line, outside) in zip(found.mutations, found.places, strict=True):
            self._by_line[line].append((mutation, outside))

    @property
    def lines(self) -> list[int]:
        return sorted(self._by_line)

    def of_line(self, line: int) -> Iterator[Mutant]:
        for number, (mutation, outside) in enumerate(self._by_line[line], start=1):
            before, after = mutation.original_node, mutation.mutated_node
            told = _differing(self._module.code_for_node(before), self._module.code_for_node(after))
            yield Mutant(
                str(self.path), line, number, _kind(before), *told, outside, partial(self._with, before, after)
            )

    def _with(self, before: cst.CSTNode, after: cst.CSTNode) -> str:
        return self._module.deep_replace(before, after).code


def files(folders: Iterable[Path]) -> list[File]:
    return [File(path) for folder in folders for path in sorted(folder.rglob("*.py"))]


def changed_since(revision: str) -> dict[str, set[int]]:
    """The lines of each file, from the root of the project, that are new or other than at a revision of git."""
    command = ["git", "diff", "--unified=0", "--no-renames", "--no-color", revision, "--", "*.py"]
    lines: dict[str, set[int]] = defaultdict(set)
    path = ""
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ b/")
        elif hunk := _HUNK.match(line):
            first, number = int(hunk[1]), int(hunk[2] or 1)
            lines[path].update(range(first, first + number))
    return lines


def sample(of: list[File], number: int, seed: int, among: dict[str, set[int]] | None = None) -> list[Mutant]:
    """number mutants: a line at random, of its kinds of mutants one, of that kind one. No two of one line.

    Chosen by line and kind, because half of all mutants are arguments of calls, most of which any test kills.
    among: these lines of each file alone."""
    chance = random.Random(seed)
    lines = [
        (file, line) for file in of for line in file.lines if among is None or line in among.get(str(file.path), ())
    ]
    chosen = []
    for file, line in chance.sample(lines, min(number, len(lines))):
        by_kind = defaultdict(list)
        for mutant in file.of_line(line):
            by_kind[mutant.kind].append(mutant)
        chosen.append(chance.choice(by_kind[chance.choice(sorted(by_kind))]))
    return chosen
