"""The lines that a serving SGLang writes by the million, described at a tenth of the cost.

Same result as the full description: what depends on words is taken from one full description of such words; a
test holds the two against each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from sgmon.analyse.log.prefix import canonical_rank, epoch
from sgmon.model import LogLine

Describe = Callable[[int, str], LogLine]

# Fixed columns, so that no search is needed: "[2026-11-29 16:05:41 TP0] ".
_RECORD = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)((?: (?:DP|PP|TP|EP)\d+)*)\] ")
# Only names and numbers: nothing in such a line can be a secret or an escape.
_BATCH = re.compile(
    r"((?:Decode|Prefill) batch, (?:#new-seq: \d+, #new-token: \d+, )?)"
    r"(?:#?[a-z][a-z0-9 #-]*(?: \(token/s\))?: (?:\d+(?:\.\d+)?|True|False)(?:, |$))+$"
)
_ACCESS = re.compile(
    r'INFO:     (?:\d{1,3}\.){3}\d{1,3}:\d{1,5} - ("(?:GET|POST) /[\w/.]{0,60} HTTP/1\.1" \d{3}[ \w]{0,24})$'
)
KEPT = 2048


class SteadyLines:
    """Describes lines; remembers what the words of steady ones mean."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe
        self._known: dict[str, tuple[str, str, str]] = {}

    def __call__(self, number: int, text: str) -> LogLine:
        record = _RECORD.match(text)
        if record is None or len(text) > 400 or not text.isascii():
            return self._describe(number, text)
        at = record.end()
        body = _BATCH.match(text, at) or _ACCESS.match(text, at)
        if body is None:
            return self._describe(number, text)
        known = self._known.get(body[1])
        if known is None:
            line = self._describe(number, text)
            if len(self._known) < KEPT:
                self._known[body[1]] = (line.level, line.kind, line.milestone)
            return line
        level, kind, milestone = known
        return LogLine(number, text, _rank(record[2]), epoch(record[1]), level, kind, milestone)


@lru_cache(maxsize=1024)
def _rank(tokens: str) -> str:
    return canonical_rank(tokens) if tokens else ""
