"""Names and verbs of sentences about ranks."""

from __future__ import annotations

from collections.abc import Sequence

from sgmon.analyse.diagnosis.ranks import RankView
from sgmon.units import rank_list


def names(views: Sequence[RankView]) -> str:
    """ "TP0-2,5", "the scheduler", "3 processes"."""
    ranked = [v.rank for v in views if v.rank]
    if not ranked:
        return views[0].name if len(views) == 1 else f"{len(views)} processes"
    return rank_list(ranked)


def ranks_of(views: Sequence[RankView]) -> tuple[str, ...]:
    """For ``odd_ranks``: SGLang's names; the only rank of a server has none and goes by its role."""
    return tuple(v.rank or v.process.role for v in views)


def verb(views: Sequence[RankView], one: str, many: str) -> str:
    """The form that fits the number of subjects: verb(views, "waits", "wait")."""
    return one if len(views) == 1 else many


def in_plural(text: str) -> str:
    """ "waits for its lock" -> "wait for their lock": the phrases of ``RankView.doing`` for several ranks."""
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
    "moves": "move",
    "does": "do",
    "connects": "connect",
}


def phrase(views: Sequence[RankView], text: str) -> str:
    """ "TP5 waits for it", "TP0-3 wait for it"."""
    return f"{names(views)} {text if len(views) == 1 else in_plural(text)}"
