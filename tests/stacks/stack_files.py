"""Recorded stacks of real starts (SGLang 0.5.17 on H200, 0.5.23 on CPU), as dumps."""

from __future__ import annotations

from pathlib import Path

from sgmon.analyse.stacks.causes import book_of
from sgmon.analyse.stacks.parse import parse_pyspy
from sgmon.model import Frame, Role, StackDump, Thread
from sgmon.servers.sglang.stacks import STACKS as RULES

BOOK = book_of(RULES)
DATA = Path(__file__).parent / "data"


def recorded(
    name: str, rank: str = "TP0", sample: int = 0, role: Role = Role.WORKER, pid: int | None = None
) -> StackDump:
    """The dump recorded in this file, as of this rank."""
    threads = parse_pyspy((DATA / name).read_text(), RULES.source_tree)
    assert threads, name
    if pid is None:
        pid = 1000 + (int(rank[2:]) if rank[2:].isdigit() else 99)
    return StackDump(pid, rank, role, float(sample), threads=threads, sample=sample)


def frames(path: str) -> tuple[Frame, ...]:
    """Frames from "inner@file:line < outer@file"."""
    found = []
    for part in path.split(" < "):
        function, _, place = part.partition("@")
        file, _, line = place.partition(":")
        found.append(Frame(function, file, int(line) if line else None))
    return tuple(found)


def made(
    path: str, rank: str = "TP0", sample: int = 0, role: Role = Role.WORKER, pid: int | None = None
) -> StackDump:
    """A dump whose main thread is in ``path``."""
    number = pid if pid is not None else 1000 + (int(rank[2:]) if rank[2:].isdigit() else 99)
    return StackDump(
        number, rank, role, float(sample), threads=(Thread(number, "MainThread", frames=frames(path)),), sample=sample
    )
