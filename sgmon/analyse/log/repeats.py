"""Lines of NCCL, which come by the thousand: once no more of their milestones are kept, the first and the last of
each GPU tell all; ranks are known in the order in which they speak."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.run import Run
from sgmon.patterns import regex

#: group 1: name and pid of a process, where its lines begin so
_PREFIX = regex(r"(\([^()]* pid=\d+\) )?([\w.-]+:)\d+:\d+ \[(\d+)\] NCCL INFO ")

Held = tuple[int, Sequence[Rule]]  # index of a line, its rules


class Repeats:
    """Holds back lines of one stretch of text; ``take`` gives those that are left, in their order."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._rule: Rule | None = None  # that of the lines held back
        self._next = -1  # the line after the last one that was held back
        self._pattern: re.Pattern[str] | None = None  # its pattern
        self._first: list[int] = []  # the first line of each kind
        self._last: dict[tuple[str | bool | None, ...], int] = {}  # writer, whether the rule matches -> its last line

    def holds(self, index: int, line: str, previous: str, rules: Sequence[Rule], special: bool) -> bool:
        """Whether a later line like this one makes it superfluous, so that it need not be read now. previous: the
        line before it."""
        if special or len(rules) != 1:
            return False
        rule = rules[0]
        if rule is not self._rule:
            if self._last or not self._needs_only_the_last(rule):
                return False
            self._rule, self._pattern = rule, rule.compiled()
        prefix = _PREFIX.match(line)
        if prefix is None or self._pattern is None:
            return False
        if self._run.ranks.writers is not None and index != self._next:
            self._run.ranks.begun(previous)
        self._next = index + 1
        matches = self._pattern.search(line) is not None  # a line with the literal alone still tells who wrote
        kind = (*prefix.groups(), matches)
        if kind not in self._last:
            self._first.append(index)
        self._last[kind] = index
        return True

    def _needs_only_the_last(self, rule: Rule) -> bool:
        """Whether of several lines of one writer with this weak milestone and nothing between them the last tells
        all: no more are kept, and no traceback is open."""
        plain = rule.weak and not (rule.once or rule.early_only or rule.rank_only or rule.gate)
        if not plain or not self._run.milestones.has_enough(rule) or self._run.wants_every_line:
            return False
        return self._run.own and not self._run.serving

    def take(self) -> list[Held]:
        """What was held back, of each kind the first and the last."""
        rule, held = self._rule, {*self._first, *self._last.values()}
        self._rule, self._first, self._last = None, [], {}
        return [(index, (rule,)) for index in sorted(held)] if rule is not None else []
