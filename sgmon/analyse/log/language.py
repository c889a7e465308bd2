"""Which family of servers wrote a text: the one whose own lines come first."""

from __future__ import annotations

from sgmon.servers import registry
from sgmon.servers.family import LogRules


def choose(text: str) -> LogRules | None:
    """The rules of the family that speaks first in ``text``; None: none does."""
    found = [(match.start(), log) for log in registry.log_rules() if (match := log.speaks.search(text))]
    return min(found, key=lambda pair: pair[0])[1] if found else None
