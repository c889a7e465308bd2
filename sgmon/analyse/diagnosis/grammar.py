"""Names and verbs of sentences about ranks."""

from __future__ import annotations

from collections.abc import Sequence

from sgmon.analyse.diagnosis.context import Context
from sgmon.model import Rank
from sgmon.units import rank_list


def names(ranks: Sequence[Rank]) -> str:
    """ "TP0-2,5", "the scheduler", "3 processes"."""
    ranked = [v.name for v in ranks if v.name]
    if not ranked:
        return ranks[0].label if len(ranks) == 1 else f"{len(ranks)} processes"
    return rank_list(ranked)


def ranks_of(context: Context, ranks: Sequence[Rank]) -> tuple[str, ...]:
    """For ``odd_ranks``: names as in the log; the only rank of a server has none and goes by its role's label."""
    return tuple(v.name or context.label(v.process.role) for v in ranks)


def verb(ranks: Sequence[Rank], one: str, many: str) -> str:
    """The form that fits the number of subjects: verb(ranks, "waits", "wait")."""
    return one if len(ranks) == 1 else many


def in_plural(text: str) -> str:
    """ "waits for its lock" -> "wait for their lock": the phrases of ``doing`` for several ranks."""
    first, _, rest = text.partition(" ")
    first = _MANY.get(first, first)
    return f"{first} {rest.replace('its ', 'their ')}".rstrip()


_MANY = {
    "waits": "wait",
    "is": "are",
    "reads": "read",
    "compiles": "compile",
    "computes": "compute",
    "imports": "import",
    "polls": "poll",
    "sleeps": "sleep",
    "makes": "make",
    "shows": "show",
    "has": "have",
    "downloads": "download",
    "connects": "connect",
}


def phrase(ranks: Sequence[Rank], text: str) -> str:
    """ "TP5 waits for it", "TP0-3 wait for it"."""
    return f"{names(ranks)} {text if len(ranks) == 1 else in_plural(text)}"
