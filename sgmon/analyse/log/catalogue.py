"""The catalogue of a family: every milestone, error and known noise that is read out of its log (two .toml files)."""

from __future__ import annotations

import re
from functools import cache, cached_property, lru_cache
from typing import Any, Literal

import msgspec

from sgmon.servers import registry
from sgmon.servers.family import LogRules
from sgmon.tables import document_of
from sgmon.versions import release

#: The package with the errors of torch, CUDA, the hub and the OS, which every family has.
GENERAL = "sgmon.servers"
#: How close to the cause an error line is, best first. "cut": a traceback whose end is missing.
GRADES = ("root", "exception", "killed", "victim", "cut", "consequence", "notice")


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of line, as the .toml files describe it. keys: literals, one of which every matching line contains.

    group: milestone | error | clue | noise; the name of its table. unasked: noise that is an error where it is the
    first word of a shutdown.
    """

    keys: tuple[str, ...] = msgspec.field(name="key")
    example: str
    group: str = ""
    name: str = ""
    pattern: str = ""
    flags: str = ""
    event: str = ""
    phase: str = ""
    next: str = ""
    who: str = "some"
    gate: Literal["", "closed", "open"] = ""
    rank_name: str = ""
    implies: str = ""
    weak: bool = False
    weak_rank: bool = False
    rank_only: bool = False
    early_only: bool = False
    once: bool = False
    again: bool = False
    post_capture: bool = False
    grade: str = "root"
    words: str = ""
    step: str = ""
    fatal: bool = False
    in_block: bool = False
    shell: bool = False
    cleanup: bool = False
    unasked: bool = False
    first: str = ""
    last: str = ""
    where: str = ""
    template: tuple[str, ...] = ()

    @property
    def closeness(self) -> int:
        """Index of ``grade`` in ``GRADES``: the smaller, the closer to the cause."""
        return GRADES.index(self.grade)

    @property
    def is_shown(self) -> bool:
        """Whether a line with it is shown as this milestone. A weak "launch" or "ready" says in which phase a text is
        that has no other; each line of a server at work is one."""
        return not (self.weak and self.name in ("launch", "ready"))

    def compiled(self) -> re.Pattern[str]:
        """Its pattern, compiled when first needed (150 of them cost 100 ms)."""
        return _compiled(self.pattern, self.flags)

    def search(self, text: str) -> re.Match[str] | None:
        """Where the rule matches."""
        return _compiled(self.pattern, self.flags).search(text)


@cache
def _compiled(pattern: str, flags: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE if "i" in flags else 0)


class Catalogue:
    """All rules of one family: milestones first, in the order of the files."""

    def __init__(self, log: LogRules) -> None:
        self.log = log

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Read and checked when first asked for. msgspec.ValidationError: a file has a row that is no rule."""
        milestones = document_of(self.log.folder, "milestones.toml")
        errors = tuple(document_of(folder, "errors.toml") for folder in (self.log.errors or self.log.folder, GENERAL))
        groups = ("error", "clue", "noise")
        return (
            *_rules(milestones, "milestone"),
            *(rule for group in groups for rows in errors for rule in _rules(rows, group)),
        )

    @cached_property
    def keys(self) -> tuple[tuple[str, tuple[Rule, ...]], ...]:
        """Every literal with the rules that it may announce."""
        by_key: dict[str, list[Rule]] = {}
        for rule in self.rules:
            for key in rule.keys:
                by_key.setdefault(key, []).append(rule)
        return tuple((key, tuple(found)) for key, found in by_key.items())

    @cached_property
    def newest(self) -> tuple[int, ...]:
        """The newest version that the catalogue knows; what it prints, newer ones are taken to print."""
        return max((key for rule in self.rules if (key := version_key(rule.last)) is not None), default=())

    @cached_property
    def fatal_kinds(self) -> frozenset[str]:
        """Names of the errors that no start survives."""
        return frozenset(rule.name for rule in self.rules if rule.group == "error" and rule.fatal)

    @cached_property
    def survivable_kinds(self) -> frozenset[str]:
        """Names of the errors that a server may survive."""
        return frozenset(rule.name for rule in self.rules if rule.group == "error" and not rule.fatal)

    @cached_property
    def filtered(self) -> frozenset[str]:
        """Milestones that some versions keep silent for all ranks but 0, all by the same filter."""
        return frozenset(rule.name for rule in self.rules if rule.who == "filtered")

    @cached_property
    def said_once(self) -> frozenset[str]:
        """Milestones that some versions let one rank of a node print; each has its own way."""
        return frozenset(rule.name for rule in self.rules if rule.who == "once")

    @cached_property
    def _steps(self) -> dict[str, str]:
        """The family's own steps against errors that any family can meet."""
        return dict(document_of(self.log.errors or self.log.folder, "errors.toml").get("steps", {}))

    @cached_property
    def _words(self) -> dict[str, str]:
        return {rule.name: rule.words for rule in self.rules if rule.words}

    def names(self, group: str = "milestone") -> tuple[str, ...]:
        """The distinct names of one group, in catalogue order."""
        return tuple(dict.fromkeys(rule.name for rule in self.rules if rule.group == group))

    def error_words(self, kind: str) -> str:
        """Words for the name of an error; one that the catalogue does not know shows its own name."""
        return self._words.get(kind, kind.replace("_", " "))

    def has_words(self, kind: str) -> bool:
        """Whether the catalogue knows this error; else its name is the exception's class."""
        return kind in self._words

    def step(self, kind: str) -> str:
        """What helps against an error, as an instruction; "": nothing is known."""
        return self._steps.get(kind) or next(
            (rule.step for rule in self.rules if rule.name == kind and rule.step), ""
        )

    def silent_by_design(self, version: str, milestone: str, rank: str) -> bool:
        """Whether ``rank`` need not print this milestone in this version, so that its absence says nothing about it.

        An unknown version is read with doubt: what any version keeps silent is silent.
        """
        key = version_key(version)
        named = (milestone, milestone.removeprefix("draft_"))
        binding = [
            rule
            for rule in self.rules
            if rule.group == "milestone" and rule.name in named and rule.who != "some" and self._printed(rule, key)
        ]
        printing = [self._prints(rule, key, rank) for rule in binding]
        return not (any(printing) if key is not None else printing and all(printing))

    def _printed(self, rule: Rule, key: tuple[int, ...] | None) -> bool:
        first, last = version_key(rule.first), version_key(rule.last)
        if first is None or last is None or key is None:
            return True
        return first <= key and (key <= last or last == self.newest)

    def _prints(self, rule: Rule, key: tuple[int, ...] | None, rank: str) -> bool:
        if rule.who == "main":
            return not rank
        if not rank or rule.who == "every" or _is_first(rank):
            return True
        if rule.who in ("filtered", "once"):
            first, last = self.log.filtered
            return key is not None and not first <= key <= last
        return rule.who == "tp0_new" and key is not None and key < (0, 4, 6, 0)


def _is_first(rank: str) -> bool:
    """Whether it is tp rank 0. One without TP ("DP1") is its own; of a pid nobody knows."""
    return re.search(r"\bTP0\b", rank) is not None or ("TP" not in rank and not rank.startswith("pid"))


@lru_cache(maxsize=16)
def of(log: LogRules) -> Catalogue:
    """The catalogue that belongs to these rules."""
    return Catalogue(log)


def of_family(name: str) -> Catalogue:
    """The catalogue of the family of that name; of the first family for a name that nobody knows."""
    known = registry.log_rules()
    return of(next((log for log in known if log.family == name), known[0]))


def version_key(version: str) -> tuple[int, ...] | None:
    """ "0.5.3.post3" -> (0, 5, 3, 3); None for what is no version ("torch", "", "0.0.0")."""
    key = release(version)
    return key if key is not None and any(key) else None


def _rules(rows: dict[str, Any], group: str) -> tuple[Rule, ...]:
    usual = {name: rows[name] for name in ("first", "last") if name in rows}  # of a whole file
    return tuple(_completed(msgspec.convert({**usual, **row, "group": group}, Rule)) for row in rows.get(group, ()))


def _completed(rule: Rule) -> Rule:
    if rule.pattern:
        return rule
    return msgspec.structs.replace(rule, name=rule.keys[0], pattern=re.escape(rule.keys[0]))
