"""Lines of NCCL, which come by the thousand: once no more milestones are kept, the last one of each GPU tells all."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.run import Run

_PREFIX = re.compile(r"([\w.-]+:)\d+:\d+ \[(\d+)\] NCCL INFO ")

Held = tuple[int, Sequence[Rule]]  # index of a line, its rules


class Repeats:
    """Holds back lines of one stretch of text; ``take`` gives those that are left, in their order."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._rule: Rule | None = None  # that of the lines held back
        self._last: dict[tuple[str | None, ...], int] = {}

    def holds(self, index: int, line: str, rules: Sequence[Rule], special: bool) -> bool:
        """Whether a later line like this one makes it superfluous, so that it need not be read now."""
        if special or len(rules) != 1:
            return False
        rule = rules[0]
        if rule is not self._rule:
            if self._last or not self._run.needs_only_the_last(rule):
                return False
            self._rule = rule
        prefix = _PREFIX.match(line)
        if prefix is None or rule.search(line) is None:
            return False
        self._last[prefix.groups()] = index
        return True

    def take(self) -> list[Held]:
        """What was held back, without what came again."""
        rule, last = self._rule, self._last
        self._rule, self._last = None, {}
        return [(index, (rule,)) for index in sorted(last.values())] if rule is not None else []
