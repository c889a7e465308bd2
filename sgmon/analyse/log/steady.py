"""The lines that a serving server writes by the million, described at a tenth of the cost.

Same result as the full description: what depends on words is taken from one full description of such words; a
test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable

from sgmon.analyse.log.prefix import epoch
from sgmon.model import LogLine
from sgmon.servers.family import LogRules

Describe = Callable[[int, str], LogLine]

KEPT = 2048


class SteadyLines:
    """Describes lines; remembers what the words of steady ones (``LogRules.steady_body``) mean."""

    def __init__(self, describe: Describe, log: LogRules) -> None:
        self._describe = describe
        self._log = log
        self._known: dict[str, tuple[str, str, str]] = {}

    def __call__(self, number: int, text: str) -> LogLine:
        record = self._log.steady_record.match(text) if self._log.steady_record is not None else None
        if record is None or len(text) > 400 or not text.isascii():
            return self._describe(number, text)
        at = record.end()
        body = next(filter(None, (pattern.match(text, at) for pattern in self._log.steady_body)), None)
        if body is None:
            return self._describe(number, text)
        known = self._known.get(body[1])
        if known is None:
            line = self._describe(number, text)
            if len(self._known) < KEPT:
                self._known[body[1]] = (line.level, line.kind, line.milestone)
            return line
        level, kind, milestone = known
        rank = self._log.rank(record[2]) if record[2] else ""
        return LogLine(number, text, rank, epoch(record[1]), level, kind, milestone, body=at)
