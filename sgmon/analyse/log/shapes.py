"""Which lines hold a literal of the catalogue. A server writes few kinds of lines, which differ in their digits: a
line without its digits is its shape, and a shape that was looked at once is known.

Deleting digits from literal and line alike loses none; what remains is looked up in the line itself.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, compress

from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.keys import gated
from sgmon.servers.family import LogRules

Keyed = tuple[tuple[str, tuple[Rule, ...]], ...]
_DIGITS = b"0123456789"
#: Shapes kept, and the longest: at most 4 MB. Real logs have some hundred.
KEPT = 8_192
LONGEST = 500
_known: dict[tuple[LogRules, bool], dict[bytes, Keyed]] = {}


def shape_of(text: str) -> bytes:
    """``text`` without its digits."""
    return text.encode("utf-8", "replace").translate(None, _DIGITS)


def hot_lines(
    log: LogRules,
    text: str,
    lines: list[str],
    serving: bool = False,
    ignores: Callable[[Rule], bool] | None = None,
    shapes: list[bytes] | None = None,
) -> Iterator[tuple[int, list[Rule], bool]]:
    """Of ``text`` (split in ``lines``) those with a literal: index, rules that it announces, whether it has a literal
    that matters without a rule. serving: milestones are over. A line for whose rules ``ignores`` holds is left out.
    shapes: of the lines, where they are known."""
    shapes = shape_of(text).split(b"\n") if shapes is None else shapes
    keyed = _look(log, set(shapes), serving)
    if not keyed or (ignores is not None and _all_ignored(keyed, ignores)):
        return
    for index in compress(range(len(lines)), map(keyed.__contains__, shapes)):
        line = lines[index]
        held = [rules for key, rules in keyed[shapes[index]] if key in line]
        # the first rule alone tells of most lines: NCCL's come by the hundred thousand
        if held and not (ignores is not None and held[0] and ignores(held[0][0]) and _ignored(held, ignores)):
            yield index, _merged(held), not all(held)


def announced(log: LogRules, text: str) -> list[Rule]:
    """The rules with a literal in ``text`` (one line); their patterns still have to match."""
    line = text.replace("\n", " ")
    return next((rules for _, rules, _ in hot_lines(log, line, [line])), [])


def matches(log: LogRules, text: str) -> list[tuple[Rule, re.Match[str]]]:
    """The rules that match ``text`` (one record)."""
    return [(rule, match) for rule in announced(log, text) if (match := rule.search(text))]


def _all_ignored(keyed: dict[bytes, Keyed], ignores: Callable[[Rule], bool]) -> bool:
    return all(_ignored([rules for _, rules in found], ignores) for found in keyed.values())


def _ignored(held: Iterable[tuple[Rule, ...]], ignores: Callable[[Rule], bool]) -> bool:
    return all(rules and all(map(ignores, rules)) for rules in held)


def _merged(held: list[tuple[Rule, ...]]) -> list[Rule]:
    rules = list(held[0])
    for more in held[1:]:
        rules += [rule for rule in more if rule not in rules]
    return rules


def _look(log: LogRules, shapes: set[bytes], serving: bool) -> dict[bytes, Keyed]:
    """Those of ``shapes`` in which a literal can be, with the literals. Threads may share what is known: each takes
    its own copy of what it needs."""
    known = _known.setdefault((log, serving), {})
    found: dict[bytes, Keyed] = {}
    fresh: list[bytes] = []
    for shape in shapes:
        keyed = known.get(shape)
        if keyed is None:
            fresh.append(shape)
        elif keyed:
            found[shape] = keyed
    if fresh:
        new = _search(log, fresh, serving)
        found.update(new)
        if len(known) + len(fresh) > KEPT:
            known.clear()
        known.update((shape, new.get(shape, ())) for shape in fresh[:KEPT] if len(shape) <= LONGEST)
    return found


def _search(log: LogRules, shapes: list[bytes], serving: bool) -> dict[bytes, Keyed]:
    """All of them in one go: searching one long text for 300 literals is much cheaper than many short ones."""
    blob = b"\n".join(shapes)
    ends: list[int] = []
    found: dict[bytes, list[tuple[str, tuple[Rule, ...]]]] = {}
    for gate, keyed in _bytes_keys(log, serving):
        if gate and gate not in blob:
            continue
        for literal, key, rules in keyed:
            at = blob.find(literal)
            while at >= 0:
                ends = ends or list(accumulate(len(shape) + 1 for shape in shapes))
                index = bisect_right(ends, at)
                found.setdefault(shapes[index], []).append((key, rules))
                at = blob.find(literal, ends[index])
    return {shape: tuple(keyed) for shape, keyed in found.items()}


@lru_cache(maxsize=16)
def _bytes_keys(
    log: LogRules, serving: bool
) -> tuple[tuple[bytes, tuple[tuple[bytes, str, tuple[Rule, ...]], ...]], ...]:
    free, behind = gated(log, serving)
    return tuple(
        (shape_of(gate), tuple((shape_of(key), key, rules) for key, rules in keyed))
        for gate, keyed in (("", free), *behind)
    )
