"""Which literals of the catalogue to search a text for: 300 of them, but a few gates rule most of them out.

Gates (``LogRules.gates``) are short literals that many keys share and that lines of a serving or debugging server
(batches, access lines) lack. A chunk without the gate has none of its keys. Only speed depends on them (chosen by
counting); a key without a gate is always searched.
"""

from __future__ import annotations

from functools import lru_cache

from sgmon.analyse.log import bars
from sgmon.analyse.log.catalogue import Rule, of
from sgmon.servers.family import LogRules

#: Lines that matter in any log without a rule: bars, tracebacks, warnings.
MORE = (
    *bars.KEYS,
    "Traceback (most recent call last)",
    "Fatal Python error",
    "WARNING",
    "WARN",
    "ERROR",
    "[W",
    "[E",
)
Keyed = tuple[tuple[str, tuple[Rule, ...]], ...]


@lru_cache(maxsize=16)
def gated(log: LogRules, serving: bool) -> tuple[Keyed, tuple[tuple[str, Keyed], ...]]:
    """Literals that are always searched, and those behind each gate. serving: without those of milestones alone."""
    every: list[tuple[str, tuple[Rule, ...]]] = [*of(log).keys, *((key, ()) for key in (*MORE, *log.more))]
    if serving:
        every = [
            (key, rules)
            for key, rules in every
            if not rules or any(rule.group != "milestone" or rule.name == "shutdown" for rule in rules)
        ]
    free: list[tuple[str, tuple[Rule, ...]]] = []
    behind: dict[str, list[tuple[str, tuple[Rule, ...]]]] = {}
    for key, rules in every:
        gate = next((gate for gate in log.gates if gate in key), None)
        if gate is None:
            free.append((key, rules))
        else:
            behind.setdefault(gate, []).append((key, rules))
    return tuple(free), tuple((gate, tuple(keyed)) for gate, keyed in behind.items())
