"""Two dumps of one process compared: what its main thread did in between."""

from __future__ import annotations

from collections.abc import Sequence

from sgmon.analyse.memo import WeakMemo
from sgmon.analyse.stacks.phase import phase_of
from sgmon.analyse.stacks.waits import waits_in
from sgmon.model import Frame, StackChange, StackDump
from sgmon.servers.family import StackRules
from sgmon.units import duration

_compared: WeakMemo[StackChange] = WeakMemo()


def compare(before: StackDump, after: StackDump, version: str, rules: StackRules) -> StackChange:
    """What changed between two dumps of a process."""
    return _compared.get((before, after), (rules, version), lambda: _compare(before, after, version, rules))


def _compare(before: StackDump, after: StackDump, version: str, rules: StackRules) -> StackChange:
    old, new = _outer(before), _outer(after)
    count = 0
    for one, other in zip(old, new, strict=False):
        if (one.function, one.file) != (other.function, other.file):
            break
        count += 1
    words = _words(before, after, old, new, count, version, rules)
    moved = len(old) > count and len(new) > count
    return StackChange(
        after.pid,
        after.rank,
        after.role,
        words,
        was=old[-1].function if moved else "",
        now=new[-1].function if moved else "",
    )


def _words(
    before: StackDump,
    after: StackDump,
    old: Sequence[Frame],
    new: Sequence[Frame],
    count: int,
    version: str,
    rules: StackRules,
) -> str:
    apart = duration(abs(after.t - before.t))
    if not old or not new:
        return "no stack in " + " and ".join(
            name for name, frames in (("the first", old), ("the second", new)) if not frames
        )
    first, second = phase_of(before, version, rules), phase_of(after, version, rules)
    if first and second and first != second:
        return f"went from {first} to {second} within {apart}"
    wait = waits_in(after, rules)
    if old == new:
        tail = f", which waits in {wait.words}" if wait else " (a long computation shows this too)"
        return f"the same frames and lines, {apart} apart{tail}"
    if count == len(old) == len(new):
        return f"the same functions on other lines, {apart} apart"
    anchor = new[count - 1].function if count else "nothing"
    return f"moved inside {anchor}, {apart} apart"


def _outer(dump: StackDump) -> tuple[Frame, ...]:
    """The main thread without native frames, outermost first (one dump may have been native, the other not)."""
    if not dump.threads:
        return ()
    return tuple(frame for frame in reversed(dump.threads[0].frames) if not frame.native)
