"""Which family of servers wrote a text: the one that most of its lines are the words of."""

from __future__ import annotations

from sgmon.servers import registry
from sgmon.servers.family import LogRules


def choose(text: str, expected: LogRules | None = None) -> LogRules | None:
    """The rules of the family that speaks most in ``text``, of two the first known; None: none speaks.

    expected: of the family whose process writes it; they are chosen wherever they speak at all.
    """
    if expected is not None and expected.speaks.search(text):
        return expected
    spoken = [(sum(1 for _ in log.speaks.finditer(text)), log) for log in registry.log_rules()]
    count, log = max(spoken, key=lambda pair: pair[0])
    return log if count else None
