"""The dumps of the newest requests in the snapshot: kept once, numbered, and looked at together when they arrive."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sgmon.analyse.stacks.compare import compare
from sgmon.analyse.stacks.merge import merge
from sgmon.analyse.stacks.rules import rules_of
from sgmon.model import Snapshot, StackChange, StackDump, StacksReading, StackView

KEPT_DUMPS = 96
KEPT_VIEWS = 4


def with_reading(snapshot: Snapshot, reading: StacksReading) -> Snapshot:
    """The snapshot with the new dumps of a reading, and what the dumps of its request show together.

    A recording from before a reading held new dumps only repeats those of its request: each is kept once.
    """
    numbered = (replace(dump, request=reading.request) for dump in reading.dumps)
    all_dumps = (*snapshot.stacks, *(dump for dump in numbered if dump not in snapshot.stacks))
    own = [dump for dump in all_dumps if dump.request == reading.request]
    view = _view(all_dumps, own, reading.request, snapshot)
    others = [old for old in snapshot.stack_views if old.request != reading.request]
    return replace(
        snapshot,
        stacks=all_dumps[-max(KEPT_DUMPS, len(own)) :],
        stack_views=(*others[-KEPT_VIEWS + 1 :], view),
        stacks_request=replace(reading, dumps=()),
    )


def _view(dumps: Sequence[StackDump], own: Sequence[StackDump], request: int, snapshot: Snapshot) -> StackView:
    rules = rules_of(snapshot.server)
    version = snapshot.log.version or ("" if snapshot.server is None else snapshot.server.version)
    newest = {dump.pid: dump for dump in sorted(own, key=lambda dump: dump.t)}
    changes: list[StackChange] = []
    for dump in newest.values():
        before = _before(dumps, own, dump)
        if before is not None and not dump.error:
            changes.append(compare(before, dump, version, rules))
    classes = merge([dump for dump in own if not dump.error], rules)
    return StackView(request, classes, tuple(changes))


def _before(dumps: Sequence[StackDump], own: Sequence[StackDump], dump: StackDump) -> StackDump | None:
    """The newest kept dump of the same process that is older than the whole request."""
    first_t = min(one.t for one in own)
    older = [one for one in dumps if one.pid == dump.pid and one.t < first_t and one.threads]
    return older[-1] if older else None
