"""What changed in the stacks since the dump before: every dump is kept with its time."""

from __future__ import annotations

from collections.abc import Sequence

from sgmon.analyse.stacks.compare import Comparison, compare
from sgmon.analyse.stacks.rules import rules_of
from sgmon.model import Snapshot, StackDump
from sgmon.servers.registry import role_label
from sgmon.text import clean
from sgmon.units import rank_list
from widgets.line import Line
from widgets.stack_lines import newest_dumps


def since_before(snapshot: Snapshot, dumps: Sequence[StackDump]) -> list[Line]:
    """One row for all ranks of which the same can be said; and, where a rank moved, from where to where."""
    version = "" if snapshot.server is None else snapshot.server.version
    rules = rules_of(snapshot.server)
    said: dict[str, list[tuple[str, Comparison]]] = {}
    for dump in newest_dumps(dumps):
        before = _before(snapshot, dumps, dump)
        if before is not None and not dump.error:
            found = compare(before, dump, version, rules)
            said.setdefault(found.words, []).append((dump.rank or role_label(snapshot.family, dump.role), found))
    rows: list[Line] = []
    for words, ranks in said.items():
        names = rank_list([name for name, _ in ranks])
        rows.append(((f" since the dump before, {names}: ", "info"), (clean(words, 300), "")))
        found = ranks[0][1]
        if found.before and found.after and not found.same:
            moved = f"   was in {found.before[-1].function}, is in {found.after[-1].function}"
            rows.append(((clean(moved, 300), "dim"),))
    return [*rows, ()] if rows else []


def _before(snapshot: Snapshot, dumps: Sequence[StackDump], dump: StackDump) -> StackDump | None:
    """The newest kept dump of the same process that is older than the whole request shown."""
    first_t = min(one.t for one in dumps)
    older = [one for one in snapshot.stacks if one.pid == dump.pid and one.t < first_t and one.threads]
    return older[-1] if older else None
