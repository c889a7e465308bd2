"""One condition of a cause: what must hold, in one process, in another one, in the log, in the whole tree.

Of one process:   stack, thread_stack (any thread), not_stack, role, state (letters), threads (a letter that some
                  thread is in), wchan, call, fd, lock, tcp, fstype
Of another one:   other_stack, other_state
Of everything:    log, error, compilers ("none" | "some"), ras, port
Stacks are patterns as in ``pattern.py``; wchan, call, fd, lock, tcp, fstype and log are regular expressions.
All keys of a condition must hold. What cannot be seen does not hold: no conclusion from missing evidence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Struct

from sgmon.analyse.stacks.pattern import StackPattern, stack_pattern
from sgmon.analyse.stacks.signals import (
    compilers_are,
    has_error,
    has_thread_in,
    in_state,
    port_shows,
    ras_shows,
    text_of,
)
from sgmon.model import CauseSource, LogState, PortReading, Process, RasReading, StackDump, Thread
from sgmon.model.roles import Role
from sgmon.text import safe

_STACKS = ("stack", "thread_stack", "not_stack")
_REGEXES = ("wchan", "call", "fd", "lock", "tcp", "fstype")
_OF_PROCESS = frozenset((*_STACKS, *_REGEXES, "role", "state", "threads"))
SHOWN = 3  # processes whose evidence is worded


class ConditionRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The keys of one condition, as they are written in the book. None: the key is not there."""

    stack: str | None = None
    thread_stack: str | None = None
    not_stack: str | None = None
    other_stack: str | None = None
    wchan: str | None = None
    call: str | None = None
    fd: str | None = None
    lock: str | None = None
    tcp: str | None = None
    fstype: str | None = None
    log: str | None = None
    role: str | None = None
    state: str | None = None
    threads: str | None = None
    other_state: str | None = None
    error: str | None = None
    compilers: Literal["none", "some"] | None = None
    ras: Literal["mismatch", "incomplete", "crossed", "no_response"] | None = None
    port: Literal["refused", "no_response", "http", "reset", "timeout", "foreign"] | None = None
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None

    def __post_init__(self) -> None:
        if not self.keys():
            raise ValueError("a condition needs something to look at beside its confidence")

    def keys(self) -> frozenset[str]:
        """The keys that must hold."""
        return frozenset(key for key in self.__struct_fields__ if getattr(self, key) is not None) - {"confidence"}


class Facts(Struct, frozen=True):
    """What the book is held against. lines: of the log, recent or erroneous, as shown. ras_t: when ``ras`` came."""

    dumps: tuple[StackDump, ...] = ()
    processes: tuple[Process, ...] = ()
    log: LogState | None = None
    lines: tuple[str, ...] = ()
    ras: RasReading | None = None
    ras_t: float | None = None
    port: PortReading | None = None
    family: str = ""


class Subject(Struct, frozen=True):
    """One process as the book sees it: what /proc says and its newest stack, either may be missing."""

    pid: int
    name: str
    role: Role
    process: Process | None
    dump: StackDump | None

    def threads(self) -> tuple[Thread, ...]:
        return self.dump.threads if self.dump is not None else ()


class Found(Struct, frozen=True):
    """Where a condition holds, and what showed it."""

    ranks: tuple[str, ...]
    pids: tuple[int, ...]
    evidence: tuple[str, ...]
    read_from: tuple[CauseSource, ...]


class Condition(Struct, frozen=True):
    """A condition ready to be matched."""

    row: ConditionRow
    keys: frozenset[str]
    stacks: dict[str, StackPattern]
    regexes: dict[str, re.Pattern[str]]
    roles: frozenset[Role]

    def holds(self, facts: Facts, subjects: Sequence[Subject], lines: Sequence[str]) -> Found | None:
        """The processes it holds in (none for a condition of log or NCCL alone), or None."""
        general = self._general(facts, subjects, lines)
        if general is None:
            return None
        if not self.keys & _OF_PROCESS:
            return Found((), (), tuple(general), self._general_sources(facts)) if self._others([], subjects) else None
        here = [(subject, seen) for subject in subjects if (seen := self._here(subject)) is not None]
        found = [subject for subject, _ in here]
        if not here or not self._others(found, subjects):
            return None
        return Found(
            ranks=tuple(subject.name for subject in found),
            pids=tuple(subject.pid for subject in found),
            evidence=(*general, *(f"{subject.name}: {text}" for subject, seen in here[:SHOWN] for text in seen)),
            read_from=(*self._general_sources(facts), *self._sources_in(found)),
        )

    def _general_sources(self, facts: Facts) -> tuple[CauseSource, ...]:
        """What the conditions of the whole server are read from."""
        found = [CauseSource("log")] if {"log", "error"} & self.keys else []
        found += [CauseSource("ras", t=facts.ras_t)] if "ras" in self.keys else []
        found += [CauseSource("port")] if "port" in self.keys else []
        return tuple(found)

    def _sources_in(self, subjects: Sequence[Subject]) -> tuple[CauseSource, ...]:
        """What the conditions of one process are read from, for each process that they hold in."""
        of_stack = self.keys & set(_STACKS)
        of_process = self.keys & _OF_PROCESS - {"role"} - of_stack
        found: list[CauseSource] = []
        for subject in subjects:
            if of_stack and subject.dump is not None:
                found.append(CauseSource("stack", subject.name, subject.dump.t))
            if of_process or not of_stack:
                found.append(CauseSource("process", subject.name))
        return tuple(found)

    def _general(self, facts: Facts, subjects: Sequence[Subject], lines: Sequence[str]) -> list[str] | None:
        """What shows that every key of the whole server holds; None when one does not."""
        row, seen = self.row, list[str]()
        pattern = self.regexes.get("log")
        if pattern is not None:
            line = next((line for line in lines if pattern.search(line)), None)
            if line is None:
                return None
            seen.append(f"log: {safe(line.strip(), 160)}")
        if row.error is not None and not has_error(facts.log, row.error):
            return None
        if row.compilers is not None and not compilers_are(
            row.compilers, [s.process for s in subjects if s.process is not None]
        ):
            return None
        if row.ras is not None:
            if facts.ras is None or not ras_shows(facts.ras, row.ras):
                return None
            seen.append(f"NCCL says: {row.ras}")
        if row.port is not None:
            if facts.port is None or not port_shows(facts.port, row.port):
                return None
            seen.append(f"{facts.port.what}: {row.port}")
        return seen

    def _others(self, here: Sequence[Subject], subjects: Sequence[Subject]) -> bool:
        pattern, state = self.stacks.get("other_stack"), self.row.other_state
        if pattern is None and state is None:
            return True
        pids = {subject.pid for subject in here}
        return any(
            (pattern is None or _frame_in(pattern, other.threads()[:1]) is not None)
            and (state is None or in_state(other.process, state))
            for other in subjects
            if len(pids) > 1 or other.pid not in pids
        )

    def _here(self, subject: Subject) -> list[str] | None:
        """What shows that every key of this process holds; None when one does not."""
        row, process = self.row, subject.process
        seen = self._stacks_here(subject)
        if seen is None:
            return None
        for key in _REGEXES:
            if key in self.regexes:
                text = text_of(process, key, self.regexes[key])
                if text is None:
                    return None
                seen.append(f"{key} {text}")
        if row.role is not None and subject.role not in self.roles:
            return None
        if row.state is not None:
            if process is None or not in_state(process, row.state):
                return None
            seen.append(f"state {process.state}")
        return None if row.threads is not None and not has_thread_in(process, row.threads) else seen

    def _stacks_here(self, subject: Subject) -> list[str] | None:
        seen: list[str] = []
        for key in _STACKS:
            pattern = self.stacks.get(key)
            if pattern is None:
                continue
            threads = subject.threads() if key == "thread_stack" else subject.threads()[:1]
            frame = _frame_in(pattern, threads)
            if key == "not_stack":
                if frame is not None or not threads:
                    return None
            elif frame is None:
                return None
            else:
                seen.append(f"is in {frame}")
        return seen


def compiled(row: ConditionRow) -> Condition:
    """The condition with its patterns compiled. Raises ValueError or ``re.error``."""
    keys = row.keys()
    return Condition(
        row,
        keys,
        stacks={key: stack_pattern(getattr(row, key)) for key in (*_STACKS, "other_stack") if key in keys},
        regexes={key: re.compile(getattr(row, key)) for key in (*_REGEXES, "log") if key in keys},
        roles=frozenset(map(_role, row.role.split("|"))) if row.role is not None else frozenset(),
    )


def _role(word: str) -> Role:
    role = Role(word)
    if role is Role.OTHER and word != "other":
        raise ValueError(f"unknown role {word!r} (known: {', '.join(role.value for role in Role)})")
    return role


def _frame_in(pattern: StackPattern, threads: Sequence[Thread]) -> str | None:
    """The function of the first frame that fits, of the first of these threads that has one."""
    for thread in threads:
        index = pattern.find(thread.frames)
        if index is not None:
            return thread.frames[index].function
    return None
