"""Recorded stacks of real starts of 0.32.0 (CPU, tp 2, torch.compile with a cold cache), as dumps."""

from __future__ import annotations

from pathlib import Path

from sgmon.analyse.stacks.parse import parse_pyspy
from sgmon.model import Role, StackDump
from sgmon.servers.vllm.stacks import STACKS as RULES

DATA = Path(__file__).parent / "stacks"
VERSION = "0.32.0"


def recorded(name: str, rank: str = "TP0", role: Role = Role.WORKER, sample: int = 0) -> StackDump:
    """The dump recorded under this name, as of this rank."""
    threads = parse_pyspy((DATA / f"{name}.json").read_text(), RULES.source_tree)
    assert threads, name
    pid = 1000 + (int(rank[2:]) if rank[2:].isdigit() else 99)
    return StackDump(pid, rank, role, float(sample), threads=threads, sample=sample)
