"""The catalogue: every milestone, error and known noise that sgmon reads out of a log (the two .toml files)."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: How close to the cause an error line is, best first. "cut": a traceback whose end is missing.
GRADES = ("root", "exception", "killed", "victim", "cut", "consequence", "notice")

#: First and last release whose model_runner logger let only tp rank 0 speak (RankZeroFilter: installed in
#: sglang 0.4.6.post5 srt/model_executor/model_runner.py:158, last installed in 0.5.2 at :217).
FILTER_FIRST = (0, 4, 6, 5)
FILTER_LAST = (0, 5, 2, 9)


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of line. keys: literals, one of which every matching line contains."""

    group: str  # milestone | error | noise
    name: str
    keys: tuple[str, ...]
    pattern: str
    example: str
    flags: int = 0
    event: str = ""
    phase: str = ""
    next: str = ""
    who: str = "some"
    rank_name: str = ""
    implies: str = ""
    weak: bool = False
    weak_rank: bool = False
    rank_only: bool = False
    early_only: bool = False
    post_capture: bool = False
    grade: int = 0
    fatal: bool = False
    in_block: bool = False
    hint: bool = False
    first: str = ""
    last: str = ""
    where: str = ""
    template: tuple[str, ...] = ()

    def search(self, text: str) -> re.Match[str] | None:
        """Where the rule matches; its pattern is compiled when first needed (150 of them cost 100 ms)."""
        return _compiled(self.pattern, self.flags).search(text)


@cache
def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern, flags)


@lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    """All rules, milestones first, in the order of the files."""
    milestones = _read("milestones.toml")
    errors = _read("errors.toml")
    return (
        *(_milestone(row) for row in milestones["milestone"]),
        *(_error(row) for row in errors["error"]),
        *(_noise(row) for row in errors["noise"]),
    )


@lru_cache(maxsize=1)
def keys() -> tuple[tuple[str, tuple[Rule, ...]], ...]:
    """Every literal with the rules that it may announce."""
    by_key: dict[str, list[Rule]] = {}
    for rule in rules():
        for key in rule.keys:
            by_key.setdefault(key, []).append(rule)
    return tuple((key, tuple(found)) for key, found in by_key.items())


def names(group: str = "milestone") -> tuple[str, ...]:
    """The distinct names of one group, in catalogue order."""
    return tuple(dict.fromkeys(rule.name for rule in rules() if rule.group == group))


def version_key(version: str) -> tuple[int, ...] | None:
    """ "0.5.3.post3" -> (0, 5, 3, 3); None for what is no version of SGLang ("torch", "", "0.0.0")."""
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?(?:\.?post(\d+))?", version)
    if not match or match[0] == "0.0.0":
        return None
    return tuple(int(part or 0) for part in match.groups())


def silent_by_design(version: str, milestone: str, rank: str) -> bool:
    """Whether ``rank`` need not print this milestone in this SGLang, so that its absence says nothing about the rank.

    An unknown version is read with doubt: what any version keeps silent is silent.
    """
    key = version_key(version)
    named = (milestone, milestone.removeprefix("draft_"))
    binding = [
        rule
        for rule in rules()
        if rule.group == "milestone" and rule.name in named and rule.who != "some" and _printed_in(rule, key)
    ]
    printing = [_prints(rule, key, rank) for rule in binding]
    return not (any(printing) if key is not None else printing and all(printing))


@cache
def newest() -> tuple[int, ...]:
    """The newest version that the catalogue knows; what it prints, newer ones are taken to print."""
    return max(key for rule in rules() if (key := version_key(rule.last)) is not None)


def _printed_in(rule: Rule, key: tuple[int, ...] | None) -> bool:
    first, last = version_key(rule.first), version_key(rule.last)
    if first is None or last is None or key is None:
        return True
    return first <= key and (key <= last or last == newest())


def _prints(rule: Rule, key: tuple[int, ...] | None, rank: str) -> bool:
    if rule.who == "main":
        return not rank
    if not rank or rule.who == "every" or re.search(r"\bTP0\b", rank):
        return True
    if rule.who == "filtered":
        return key is not None and not FILTER_FIRST <= key <= FILTER_LAST
    return rule.who == "tp0_new" and key is not None and key < (0, 4, 6, 0)


def _read(name: str) -> dict[str, Any]:
    rows: dict[str, Any] = tomllib.loads((files("sgmon.analyse.log") / name).read_text("utf-8"))
    return rows


def _milestone(row: dict[str, Any]) -> Rule:
    return Rule(
        group="milestone",
        name=row["name"],
        keys=tuple(row["key"]),
        pattern=row["pattern"],
        example=row["example"],
        flags=int(re.IGNORECASE) if row.get("flags") == "i" else 0,
        event=row["event"],
        phase=row["phase"],
        next=row.get("next", ""),
        who=row["who"],
        rank_name=row.get("rank_name", ""),
        implies=row.get("implies", ""),
        weak=row.get("weak", False),
        weak_rank=row.get("weak_rank", False),
        rank_only=row.get("rank_only", False),
        early_only=row.get("early_only", False),
        post_capture=row.get("post_capture", False),
        first=row["first"],
        last=row["last"],
        where=row["where"],
        template=tuple(row["template"]),
    )


def _error(row: dict[str, Any]) -> Rule:
    return Rule(
        group="error",
        name=row["kind"],
        keys=tuple(row["key"]),
        pattern=row["pattern"],
        example=row["example"],
        grade=GRADES.index(row["grade"]),
        fatal=row.get("fatal", False),
        in_block=row.get("in_block", False),
        hint=row.get("hint", False),
        first=row.get("first", "0.4.1.post7"),
        last=row.get("last", "0.5.23"),
        template=tuple(row.get("template", ())),
    )


def _noise(row: dict[str, Any]) -> Rule:
    return Rule(
        group="noise",
        name=row["key"],
        keys=(row["key"],),
        pattern=re.escape(row["key"]),
        example=row["example"],
    )
