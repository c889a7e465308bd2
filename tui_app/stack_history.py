"""What changed in the stacks since the dump before, as rows."""

from __future__ import annotations

from sgmon.model import StackChange, StackView
from sgmon.servers.registry import role_label
from sgmon.text import clean
from sgmon.units import rank_list
from widgets.line import Line


def since_before(view: StackView, pids: frozenset[int] | None, family: str) -> list[Line]:
    """One row for all ranks of which the same can be said; and, where a rank moved, from where to where."""
    reported: dict[str, list[StackChange]] = {}
    for change in view.changes:
        if pids is None or change.pid in pids:
            reported.setdefault(change.words, []).append(change)
    rows: list[Line] = []
    for words, changes in reported.items():
        names = rank_list([change.rank or role_label(family, change.role) for change in changes])
        rows.append(((f"   {names}: ", "info"), (clean(words, 300), "")))
        if changes[0].was:
            moved = f"     was in {changes[0].was}, is in {changes[0].now}"
            rows.append(((clean(moved, 300), "dim"),))
    return [((" since the dump before", "title"),), *rows, ()] if rows else []
