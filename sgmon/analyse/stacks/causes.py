"""The cause book: patterns of stacks, log lines, descriptors, processes, locks, sockets -> a cause (causes.toml)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sgmon.analyse.stacks.conditions import Condition, ConditionRow, Facts, Subject, compiled
from sgmon.analyse.stacks.merge import rank_name
from sgmon.model import CauseHit, StackDump
from sgmon.servers.family import StackRules
from sgmon.servers.registry import role_label
from sgmon.tables import TableError, parse_rows, text_of

FILE = "causes.toml"
MAX_LINE = 2000

_Text = Annotated[str, msgspec.Meta(min_length=1)]


class CauseRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry as it is written in the book; the head of ``causes.toml`` says what the fields mean."""

    id: _Text
    title: _Text
    when: Annotated[tuple[ConditionRow, ...], msgspec.Meta(min_length=1)]
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    advice: str = ""
    command: str = ""
    source: tuple[str, ...] | str = ()
    slow: bool = False


class Cause(Struct, frozen=True):
    """One entry: it fits when one of its conditions holds."""

    row: CauseRow
    when: tuple[Condition, ...]
    by_user: bool = False

    @property
    def id(self) -> str:
        return self.row.id


Book = tuple[Cause, ...]


def match(facts: Facts, book: Sequence[Cause]) -> tuple[CauseHit, ...]:
    """The entries that fit, the surest first; user entries before ours at the same confidence."""
    subjects = _subjects(facts)
    lines = _lines(facts)
    hits = [hit for cause in book if (hit := _hit(cause, facts, subjects, lines))]
    return tuple(sorted(hits, key=lambda hit: (-hit.confidence, not hit.by_user)))


@lru_cache(maxsize=8)
def book_of(rules: StackRules) -> Book:
    """The book that comes with sgmon: general causes, with the family's own."""
    general = parse_book(text_of("sgmon.analyse.stacks", FILE), FILE)
    if not rules.folder:
        return general
    return with_entries(general, parse_book(text_of(rules.folder, FILE), f"{rules.folder}/{FILE}"))


def parse_book(text: str, origin: str, *, by_user: bool = False) -> Book:
    """A cause book from its text. Raises ``TableError`` that names the entry and what is wrong with it."""
    causes = []
    for row in parse_rows(text, "cause", CauseRow, origin):
        try:
            causes.append(Cause(row, tuple(map(compiled, row.when)), by_user))
        except (ValueError, re.error) as err:
            raise TableError(f"{origin}: cause {row.id}: {err}") from err
    return tuple(causes)


def with_entries(book: Sequence[Cause], more: Sequence[Cause]) -> Book:
    """A book with more entries: one with the same id replaces the one that is there."""
    ids = {cause.id for cause in more}
    return (*(cause for cause in book if cause.id not in ids), *more)


def _hit(cause: Cause, facts: Facts, subjects: Sequence[Subject], lines: Sequence[str]) -> CauseHit | None:
    best: CauseHit | None = None
    row = cause.row
    for condition in cause.when:
        confidence = row.confidence if condition.row.confidence is None else condition.row.confidence
        if best is not None and best.confidence >= confidence:
            continue
        found = condition.holds(facts, subjects, lines)
        if found is None:
            continue
        best = CauseHit(
            id=row.id,
            title=row.title,
            confidence=confidence,
            ranks=found.ranks,
            evidence=found.evidence,
            advice=row.advice,
            command=_filled(row.command, found.pids),
            sources=(row.source,) if isinstance(row.source, str) else row.source,
            slow=row.slow,
            by_user=cause.by_user,
            read_from=found.read_from,
        )
    return best


def _filled(command: str, pids: Sequence[int]) -> str:
    return command.replace("PID", str(pids[0])) if pids else command


def _subjects(facts: Facts) -> list[Subject]:
    """Every process with its newest dump; dumps of processes that are not listed come without one."""
    newest: dict[int, StackDump] = {}
    for dump in facts.dumps:
        if dump.pid not in newest or (dump.t, dump.sample) >= (newest[dump.pid].t, newest[dump.pid].sample):
            newest[dump.pid] = dump
    subjects = [
        Subject(
            process.pid,
            process.rank or role_label(facts.family, process.role),
            process.role,
            process,
            newest.pop(process.pid, None),
        )
        for process in facts.processes
    ]
    subjects += [Subject(dump.pid, rank_name(dump), dump.role, None, dump) for dump in newest.values()]
    return [replace(subject, name=subject.name or f"pid {subject.pid}") for subject in subjects]


def _lines(facts: Facts) -> list[str]:
    """The log's lines that may name a cause; the line with all arguments names every feature and none."""
    lines = list(facts.lines)
    if facts.log is not None:
        lines += [line.text for line in (facts.log.error, facts.log.last_line) if line is not None]
    return [line[:MAX_LINE] for line in dict.fromkeys(lines) if "server_args=" not in line]
