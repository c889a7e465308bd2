"""The cause book: patterns of stacks, log lines, descriptors, processes, locks, sockets -> a cause (causes.toml)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sgmon.analyse.stacks.conditions import Condition, Subject, parse_condition
from sgmon.analyse.stacks.merge import rank_name
from sgmon.analyse.stacks.tables import TableError, own_text, parse_tables, word_list, words
from sgmon.model import CauseHit, LogState, PortReading, Process, RasReading, StackDump

MAX_LINE = 2000
_FIELDS = frozenset({"id", "title", "confidence", "when", "advice", "command", "source", "slow"})


@dataclass(frozen=True, slots=True)
class Facts:
    """What the book is held against. lines: of the log, recent or erroneous, as shown. ras_t: when ``ras`` came."""

    dumps: tuple[StackDump, ...] = ()
    processes: tuple[Process, ...] = ()
    log: LogState | None = None
    lines: tuple[str, ...] = ()
    ras: RasReading | None = None
    ras_t: float | None = None
    port: PortReading | None = None


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry: it fits when one of its conditions holds."""

    id: str
    title: str
    confidence: float
    when: tuple[Condition, ...]
    advice: str = ""
    command: str = ""
    sources: tuple[str, ...] = ()
    slow: bool = False
    by_user: bool = False


def match(facts: Facts, book: Sequence[Cause] | None = None) -> tuple[CauseHit, ...]:
    """The entries that fit, the surest first; user entries before ours at the same confidence."""
    subjects = _subjects(facts)
    lines = _lines(facts)
    hits = [hit for cause in (own_book() if book is None else book) if (hit := _hit(cause, facts, subjects, lines))]
    return tuple(sorted(hits, key=lambda hit: (-hit.confidence, not hit.by_user)))


@lru_cache(maxsize=1)
def own_book() -> tuple[Cause, ...]:
    """The book that comes with sgmon."""
    return parse_book(own_text("causes.toml"), "causes.toml")


def parse_book(text: str, origin: str, *, by_user: bool = False) -> tuple[Cause, ...]:
    """A cause book from its text. Raises ``TableError`` that names the entry and what is wrong with it."""
    causes = []
    for number, entry in enumerate(parse_tables(text, "cause", origin), 1):
        name = entry.get("id")
        where = f"{origin}: cause {name if isinstance(name, str) else number}"
        try:
            causes.append(_cause(entry, by_user))
        except (TableError, ValueError, re.error) as err:
            raise TableError(f"{where}: {err}") from err
    return tuple(causes)


def with_user_book(text: str, origin: str) -> tuple[Cause, ...]:
    """Our book with the user's: an entry with the same id replaces ours."""
    theirs = parse_book(text, origin, by_user=True)
    names = {cause.id for cause in theirs}
    return (*theirs, *(cause for cause in own_book() if cause.id not in names))


def _cause(entry: Mapping[str, object], by_user: bool) -> Cause:
    unknown = sorted(set(entry) - _FIELDS)
    if unknown:
        raise TableError(f"unknown field {unknown[0]!r} (known: {', '.join(sorted(_FIELDS))})")
    when = entry.get("when")
    if not isinstance(when, list) or not when:
        raise TableError("when must be a list of conditions, and not empty")
    name, title = words(entry, "id"), words(entry, "title")
    if not name or not title:
        raise TableError("id and title are needed")
    return Cause(
        id=name,
        title=title,
        confidence=_confidence(entry.get("confidence", 0.5)),
        when=tuple(parse_condition(item) for item in when),
        advice=words(entry, "advice"),
        command=words(entry, "command"),
        sources=word_list(entry, "source"),
        slow=entry.get("slow", False) is True,
        by_user=by_user,
    )


def _confidence(value: object) -> float:
    if not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise TableError(f"confidence must be between 0 and 1, not {value!r}")
    return float(value)


def _hit(cause: Cause, facts: Facts, subjects: Sequence[Subject], lines: Sequence[str]) -> CauseHit | None:
    best: CauseHit | None = None
    for condition in cause.when:
        found = condition.holds(subjects, lines, facts.log, facts.ras, facts.port, facts.ras_t)
        if found is None:
            continue
        confidence = cause.confidence if condition.confidence is None else condition.confidence
        if best is not None and best.confidence >= confidence:
            continue
        best = CauseHit(
            id=cause.id,
            title=cause.title,
            confidence=confidence,
            ranks=found.ranks,
            evidence=found.evidence,
            advice=cause.advice,
            command=_filled(cause.command, found.pids),
            sources=cause.sources,
            slow=cause.slow,
            by_user=cause.by_user,
            read_from=found.read_from,
        )
    return best


def _filled(command: str, pids: Sequence[int]) -> str:
    return command.replace("PID", str(pids[0])) if pids else command


def _subjects(facts: Facts) -> list[Subject]:
    """Every process with its newest dump; dumps of processes that are not listed stand alone."""
    newest: dict[int, StackDump] = {}
    for dump in facts.dumps:
        if dump.pid not in newest or (dump.t, dump.sample) >= (newest[dump.pid].t, newest[dump.pid].sample):
            newest[dump.pid] = dump
    subjects = [
        Subject(process.pid, process.rank or process.role, process.role, process, newest.pop(process.pid, None))
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
