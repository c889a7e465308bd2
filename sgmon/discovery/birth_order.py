"""Which worker is which before it has a title: by its place in the order in which its parent spawns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sgmon.servers.family import Slot


class Child(NamedTuple):
    """A child of a process that spawns workers, alive or not. slot None: it has no title yet."""

    pid: int
    slot: Slot | None = None


def infer(children: Sequence[Child], slots: Sequence[Slot]) -> dict[int, Slot]:
    """pid -> slot for the untitled among ``children`` (in birth order). Titles are obeyed: where a titled child is in
    another place than expected, the untitled get what the titles leave over, in order."""
    placed = list(zip(children, slots))  # noqa: B905 - "strict" needs Python 3.10, a collector has 3.8
    if all(child.slot is None or same(child.slot, slot) for child, slot in placed):
        return {child.pid: slot for child, slot in placed if child.slot is None}
    left = list(slots)
    for child in children:
        taken = next((slot for slot in left if child.slot is not None and same(child.slot, slot)), None)
        if taken is not None:
            left.remove(taken)
    untitled = [child.pid for child in children if child.slot is None]
    return dict(zip(untitled, left))  # noqa: B905


def same(one: Slot, other: Slot) -> bool:
    """Whether both name the same worker; one may carry a token more (EP is not always in the arguments)."""
    ours, theirs = set(one.rank.split()), set(other.rank.split())
    return one.role == other.role and (ours <= theirs or theirs <= ours)
