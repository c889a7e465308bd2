"""Stacks of many ranks, several samples each, folded into classes of ranks that are in the same place.

The place of a rank: in a wait, the path down to the wait's own frame (what happens inside it is the wait's
business); at work, the path down to the frame that proves its phase (inside it, each rank is somewhere else
at any moment); else all frames that its samples share. Line numbers and native frames do not divide ranks.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from sgmon.analyse.memo import WeakMemo
from sgmon.analyse.stacks.phase import phase_frame, phase_of_frames
from sgmon.analyse.stacks.refusals import GONE, ZOMBIE
from sgmon.analyse.stacks.waits import StackWait, wait_of
from sgmon.model import Frame, StackClass, StackDump, WaitKind
from sgmon.model.roles import Role
from sgmon.servers.family import StackRules

_Key = tuple[tuple[str, str], ...]
_RANK_ROLES = frozenset({Role.WORKER, Role.IMPORTING})
MAX_SEEN = 3
_DEAD = (GONE.why, ZOMBIE.why)
#: Python's own start of every process: nothing that a reader needs
_BOILERPLATE = ("multiprocessing/", "<string>", "<frozen runpy>", "<frozen importlib")


class _Place(Struct, frozen=True):
    """Where one rank is over all its samples."""

    rank: str
    key: _Key
    frames: tuple[Frame, ...]
    wait: StackWait | None
    moved: bool
    samples: int
    innermost: str  # function of the newest sample


_merged: WeakMemo[tuple[StackClass, ...]] = WeakMemo()


def merge(dumps: Sequence[StackDump], rules: StackRules) -> tuple[StackClass, ...]:
    """Classes of ranks, the outliers first, the majority last; ranks without any stack after the outliers."""
    return _merged.get(dumps, rules, lambda: _merge(dumps, rules))


def _merge(dumps: Sequence[StackDump], rules: StackRules) -> tuple[StackClass, ...]:
    ranks = _by_rank(dumps)
    places = [place for rank, own in ranks.items() if (place := _place(rank, own, rules)) is not None]
    classes = _classes(places, rules)
    unseen = [_unseen(rank, own) for rank, own in ranks.items() if not any(dump.threads for dump in own)]
    unseen = _fold_unseen(unseen, some_seen=bool(places))
    return tuple(
        found
        for outlier in (True, False)
        for group in (unseen, classes)
        for found in group
        if found.outlier is outlier
    )


def rank_name(dump: StackDump) -> str:
    """How a process is called among the ranks: its rank, or its role where it has none."""
    return dump.rank if dump.rank or _is_worker(dump) else f"{dump.role} {dump.pid}"


def of_ranks(dumps: Sequence[StackDump]) -> list[StackDump]:
    """The dumps of ranks; where there are none (an unnamed tree), all of them."""
    found = [d for d in dumps if _is_worker(d) or (d.rank and d.role in _RANK_ROLES)]
    return found or list(dumps)


def _is_worker(dump: StackDump) -> bool:
    return dump.role is Role.WORKER


def python_frames(dump: StackDump) -> tuple[Frame, ...]:
    """The main thread without native frames, innermost first."""
    if not dump.threads:
        return ()
    return tuple(frame for frame in dump.threads[0].frames if not frame.native)


def is_boilerplate(frame: Frame) -> bool:
    """Frames that every Python process has outermost."""
    return frame.file.startswith(_BOILERPLATE)


def _by_rank(dumps: Sequence[StackDump]) -> dict[str, list[StackDump]]:
    found: dict[str, list[StackDump]] = {}
    for dump in sorted(of_ranks(dumps), key=lambda dump: (dump.sample, dump.t)):
        found.setdefault(rank_name(dump), []).append(dump)
    return found


def _place(rank: str, dumps: Sequence[StackDump], rules: StackRules) -> _Place | None:
    stacks = [stack for dump in dumps if (stack := python_frames(dump))]
    if not stacks:
        return None
    return _waiting(rank, stacks, rules) or _working(rank, stacks, rules)


def _waiting(rank: str, stacks: Sequence[tuple[Frame, ...]], rules: StackRules) -> _Place | None:
    """The place of a rank that was in one and the same wait in all samples."""
    waits = [wait for stack in stacks if (wait := wait_of(stack, rules)) is not None]
    if len(waits) < len(stacks):
        return None
    tails = [stack[wait.depth :] for stack, wait in zip(stacks, waits, strict=True)]
    if len({_path(tail) for tail in tails}) > 1:
        return None
    moved = len({_exact(tail[1:]) for tail in tails}) > 1  # the lines of the wait's own loop do not count
    return _Place(rank, _path(tails[-1]), stacks[-1], waits[-1], moved, len(stacks), stacks[-1][0].function)


def _working(rank: str, stacks: Sequence[tuple[Frame, ...]], rules: StackRules) -> _Place:
    moved = len({_exact(stack) for stack in stacks}) > 1
    shared = _shared(stacks)
    at = phase_frame(shared, rules)
    place = shared if at is None else shared[at:]
    frames = shared or stacks[-1] if moved else stacks[-1]
    return _Place(rank, _path(place), frames, None, moved, len(stacks), stacks[-1][0].function)


def _shared(stacks: Sequence[tuple[Frame, ...]]) -> tuple[Frame, ...]:
    """The outer frames that all stacks have in common, innermost first, with the last stack's lines."""
    count = 0
    for frames in zip(*[reversed(stack) for stack in stacks], strict=False):
        if len({(frame.function, frame.file) for frame in frames}) > 1:
            break
        count += 1
    return stacks[-1][len(stacks[-1]) - count :]


def _path(frames: Sequence[Frame]) -> _Key:
    return tuple((frame.function, frame.file) for frame in frames)


def _exact(frames: Sequence[Frame]) -> tuple[tuple[str, str, int | None], ...]:
    return tuple((frame.function, frame.file, frame.line) for frame in frames)


def _classes(places: Sequence[_Place], rules: StackRules) -> list[StackClass]:
    groups: dict[_Key, list[_Place]] = {}
    for place in places:
        groups.setdefault(place.key, []).append(place)
    ordered = sorted(groups.values(), key=lambda group: (len(group), [place.rank for place in group]))
    outliers = _outliers(ordered)
    return [_class(group, index in outliers, rules) for index, group in enumerate(ordered)]


def _outliers(groups: Sequence[Sequence[_Place]]) -> set[int]:
    """Which groups the others wait for. Empty where stacks cannot tell."""
    if len(groups) < 2:
        return set()
    largest = len(groups[-1])
    waiting = {index for index, group in enumerate(groups) if _for_peers(group[0].wait)}
    if not waiting:  # idle ones wait for those at work
        waiting = {index for index, group in enumerate(groups) if _is_idle(group[0].wait)}
    free = set(range(len(groups))) - waiting
    if all(wait is not None and wait.setup for wait in (group[0].wait for group in groups)):
        return set()  # the first rank serves the rendezvous, the others connect: all wait for one who is not here
    if waiting and free:
        # those who wait for nobody are waited for, unless they are the majority, still at work
        largest = max(len(groups[index]) for index in waiting)
        return {index for index in free if len(groups[index]) <= largest}
    if len(groups[-2]) == largest:
        return set()
    return {index for index, group in enumerate(groups) if len(group) < largest}


def _for_peers(wait: StackWait | None) -> bool:
    return wait is not None and wait.for_ranks


def _is_idle(wait: StackWait | None) -> bool:
    return wait is not None and wait.kind is WaitKind.IDLE


def _class(group: Sequence[_Place], outlier: bool, rules: StackRules) -> StackClass:
    moving = any(place.moved for place in group)
    frames = group[0].frames
    if moving and group[0].wait is None:
        frames = _shared([place.frames for place in group]) or frames
    return StackClass(
        ranks=tuple(place.rank for place in group),
        frames=frames,
        moving=moving,
        outlier=outlier,
        note=_note(group, rules),
    )


def _note(group: Sequence[_Place], rules: StackRules) -> str:
    """In words: the wait, or the phase and where inside it; and what the samples prove."""
    wait = group[0].wait
    samples = max(place.samples for place in group)
    unmoved = [place.rank for place in group if not place.moved]
    parts = [f"waits in {wait.words}"] if wait is not None else _work_words(group, rules)
    if samples == 1:
        parts.append("one sample: cannot tell whether it moves")
    elif unmoved:
        only = f" only on {', '.join(unmoved)}" if len(unmoved) < len(group) else ""
        doubt = ", which a long computation shows too" if wait is None and not only else ""
        parts.append(f"unchanged in {samples} samples{only}{doubt}")
    return "; ".join(parts)


def _work_words(group: Sequence[_Place], rules: StackRules) -> list[str]:
    phase = phase_of_frames(group[0].frames, rules)
    seen = list(dict.fromkeys(place.innermost for place in group))
    tail = ", …" if len(seen) > MAX_SEEN else ""
    return [rules.during(phase)] * bool(phase) + [f"last seen in {', '.join(seen[:MAX_SEEN])}{tail}"]


def _unseen(rank: str, dumps: Sequence[StackDump]) -> StackClass:
    dump = dumps[-1]
    why = next((missing.why for missing in dump.missing if missing.signal == "stack"), "")
    return StackClass((rank,), (), outlier=why in _DEAD, note=why or dump.error or "no stack, and no reason given")


def _fold_unseen(classes: Sequence[StackClass], *, some_seen: bool) -> list[StackClass]:
    """Ranks without a stack, folded by reason. A dead one is an outlier only where others are alive."""
    folded: dict[str, StackClass] = {}
    for found in classes:
        old = folded.get(found.note)
        ranks = (*old.ranks, *found.ranks) if old else found.ranks
        folded[found.note] = replace(found, ranks=ranks, outlier=found.outlier and some_seen)
    return list(folded.values())
