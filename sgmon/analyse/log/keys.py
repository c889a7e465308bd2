"""Which literals of the catalogue to search a text for: 300 of them, but a few gates rule most of them out."""

from __future__ import annotations

from functools import lru_cache

from sgmon.analyse.log import bars, catalogue
from sgmon.analyse.log.catalogue import Rule

#: Lines that matter without a rule: bars, tracebacks, arguments, versions, warnings.
MORE = (
    *bars.KEYS,
    "Traceback (most recent call last)",
    "Fatal Python error",
    "Context: ",
    "server_args=",
    "sglang==",
    "sglang version",
    "sglang_version",
    "WARNING",
    "WARN",
    "ERROR",
    "[W",
    "[E",
)
#: Short literals that many keys share and that lines of a serving or debugging server (batches, access lines) lack.
#: A chunk without the gate has none of its keys. Only speed depends on this list (chosen by counting); a key without
#: a gate is always searched.
GATES = (
    *(
        "rror",
        "ing ",
        "ted ",
        "exit",
        "apture",
        "ailed",
        " is ",
        "emory",
        "ation",
        "not ",
        "server",
        "tart",
        "weight ",
    ),
    *("device", "nit ", "ound", "out ", "arning", " call", "t co", "eceived", "nd of ", "pped", " in ", "ph end."),
    *(" by pee", "DeepGEM", "omplete", " exceed", "loading", "sfer_en", " leaked", "l_info ", "sglang", "client"),
    *("shard", "ult e", "ERROR", "acke", "tore", "able", "with", "NCCL", "nccl", "Bytes", "exceeded", "WARN"),
)

Keyed = tuple[tuple[str, tuple[Rule, ...]], ...]


@lru_cache(maxsize=2)
def gated(serving: bool) -> tuple[Keyed, tuple[tuple[str, Keyed], ...]]:
    """Literals that are always searched, and those behind each gate. serving: without those of milestones alone."""
    every: list[tuple[str, tuple[Rule, ...]]] = [*catalogue.keys(), *((key, ()) for key in MORE)]
    if serving:
        every = [
            (key, rules)
            for key, rules in every
            if not rules or any(rule.group != "milestone" or rule.name == "shutdown" for rule in rules)
        ]
    free: list[tuple[str, tuple[Rule, ...]]] = []
    behind: dict[str, list[tuple[str, tuple[Rule, ...]]]] = {}
    for key, rules in every:
        gate = next((gate for gate in GATES if gate in key), None)
        if gate is None:
            free.append((key, rules))
        else:
            behind.setdefault(gate, []).append((key, rules))
    return tuple(free), tuple((gate, tuple(keyed)) for gate, keyed in behind.items())
