"""Two dumps of one process compared: what stayed, what came, what went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sgmon.analyse.stacks.memo import Memo
from sgmon.analyse.stacks.phase import phase_of
from sgmon.analyse.stacks.waits import waits_in
from sgmon.model import Frame, StackDump, Thread
from sgmon.servers.family import StackRules
from sgmon.units import duration

_compared: Memo[Comparison] = Memo(256)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Main threads of two dumps. common: outer frames both have, outermost first; before/after: what is inside.

    same: every frame is the same, its line too. threads: names of other threads that differ.
    """

    same: bool
    apart_s: float
    common: tuple[Frame, ...]
    before: tuple[Frame, ...]
    after: tuple[Frame, ...]
    threads: tuple[str, ...] = ()
    words: str = ""


def compare(before: StackDump, after: StackDump, version: str, rules: StackRules) -> Comparison:
    """What changed between two dumps of a process (or between two processes' dumps)."""
    return _compared.get((before, after), (rules, version), lambda: _compare(before, after, version, rules))


def _compare(before: StackDump, after: StackDump, version: str, rules: StackRules) -> Comparison:
    old, new = _outer(before), _outer(after)
    count = 0
    for one, other in zip(old, new, strict=False):
        if (one.function, one.file) != (other.function, other.file):
            break
        count += 1
    return Comparison(
        same=old == new and bool(old),
        apart_s=after.t - before.t,
        common=new[:count],
        before=old[count:],
        after=new[count:],
        threads=_changed_threads(before.threads[1:], after.threads[1:]),
        words=_words(before, after, old, new, count, version, rules),
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


def _changed_threads(old: Sequence[Thread], new: Sequence[Thread]) -> tuple[str, ...]:
    before = {thread.tid: thread for thread in old}
    after = {thread.tid: thread for thread in new}
    names = []
    for tid in {**before, **after}:
        one, other = before.get(tid), after.get(tid)
        known = other or one
        assert known is not None
        name = known.name or f"thread {tid}"
        if one is None:
            names.append(f"{name} (new)")
        elif other is None:
            names.append(f"{name} (ended)")
        elif one.frames != other.frames:
            names.append(name)
    return tuple(names)
