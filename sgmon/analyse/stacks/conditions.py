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
from dataclasses import dataclass, field

from sgmon.analyse.stacks.pattern import StackPattern, stack_pattern
from sgmon.analyse.stacks.tables import TableError
from sgmon.model import CauseSource, LogState, PortReading, Process, RasReading, StackDump, Thread
from sgmon.text import clean, mask

_STACKS = ("stack", "thread_stack", "not_stack", "other_stack")
_REGEXES = ("wchan", "call", "fd", "lock", "tcp", "fstype", "log")
_WORDS = ("role", "state", "threads", "other_state", "error", "compilers", "ras", "port")
_OF_PROCESS = frozenset(
    ("stack", "thread_stack", "not_stack", "role", "state", "threads", "wchan", "call", "fd", "lock", "tcp", "fstype")
)
RAS_WORDS = ("mismatch", "incomplete", "crossed", "mute")
PORT_WORDS = ("refused", "mute", "http", "reset", "timeout", "foreign")


@dataclass(frozen=True, slots=True)
class Subject:
    """One process as the book sees it: what /proc says and its newest stack, either may be missing."""

    pid: int
    name: str
    role: str
    process: Process | None
    dump: StackDump | None

    def threads(self) -> tuple[Thread, ...]:
        return self.dump.threads if self.dump is not None else ()


@dataclass(frozen=True, slots=True)
class Found:
    """Where a condition holds, and what showed it."""

    ranks: tuple[str, ...]
    pids: tuple[int, ...]
    evidence: tuple[str, ...]
    read_from: tuple[CauseSource, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """Parsed keys of one condition."""

    stacks: dict[str, StackPattern] = field(default_factory=dict)
    regexes: dict[str, re.Pattern[str]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    confidence: float | None = None

    def holds(
        self,
        subjects: Sequence[Subject],
        lines: Sequence[str],
        log: LogState | None,
        ras: RasReading | None,
        port: PortReading | None,
        ras_t: float | None = None,
    ) -> Found | None:
        """The processes it holds in (none for a condition of log or NCCL alone), or None."""
        general = self._general(subjects, lines, log, ras, port)
        if general is None:
            return None
        if not self._keys() & _OF_PROCESS:
            sources = self._general_sources(ras_t)
            return Found((), (), tuple(general), sources) if self._others([], subjects) else None
        here = [(subject, seen) for subject in subjects if (seen := self._here(subject)) is not None]
        if not here or not self._others([subject for subject, _ in here], subjects):
            return None
        return Found(
            ranks=tuple(subject.name for subject, _ in here),
            pids=tuple(subject.pid for subject, _ in here),
            evidence=(*general, *(f"{subject.name}: {text}" for subject, seen in here[:3] for text in seen)),
            read_from=(*self._general_sources(ras_t), *self._sources_in([subject for subject, _ in here])),
        )

    def _general_sources(self, ras_t: float | None) -> tuple[CauseSource, ...]:
        """What the conditions of the whole server are read from."""
        found = [CauseSource("log")] if {"log", "error"} & self._keys() else []
        found += [CauseSource("ras", t=ras_t)] if "ras" in self.words else []
        found += [CauseSource("port")] if "port" in self.words else []
        return tuple(found)

    def _sources_in(self, subjects: Sequence[Subject]) -> tuple[CauseSource, ...]:
        """What the conditions of one process are read from, for each process that they hold in."""
        of_stack = self._keys() & {"stack", "thread_stack", "not_stack"}
        of_process = self._keys() & _OF_PROCESS - {"role"} - of_stack
        found: list[CauseSource] = []
        for subject in subjects:
            if of_stack and subject.dump is not None:
                found.append(CauseSource("stack", subject.name, subject.dump.t))
            if of_process or not of_stack:
                found.append(CauseSource("process", subject.name))
        return tuple(found)

    def _keys(self) -> set[str]:
        return {*self.stacks, *self.regexes, *self.words}

    def _general(
        self,
        subjects: Sequence[Subject],
        lines: Sequence[str],
        log: LogState | None,
        ras: RasReading | None,
        port: PortReading | None,
    ) -> list[str] | None:
        seen: list[str] = []
        pattern = self.regexes.get("log")
        if pattern is not None:
            line = next((line for line in lines if pattern.search(line)), None)
            if line is None:
                return None
            seen.append(f"log: {mask(clean(line.strip(), 160))}")
        if "error" in self.words and not (log and log.error and log.error.kind in self.words["error"].split("|")):
            return None
        if "compilers" in self.words and not _compilers(subjects, self.words["compilers"]):
            return None
        if "ras" in self.words:
            if ras is None or not _ras(ras, self.words["ras"]):
                return None
            seen.append(f"NCCL says: {self.words['ras']}")
        if "port" in self.words:
            if port is None or not _port(port, self.words["port"]):
                return None
            seen.append(f"port {port.port}: {self.words['port']}")
        return seen

    def _others(self, here: Sequence[Subject], subjects: Sequence[Subject]) -> bool:
        pattern, state = self.stacks.get("other_stack"), self.words.get("other_state")
        if pattern is None and state is None:
            return True
        pids = {subject.pid for subject in here}
        return any(
            (pattern is None or _in_main(pattern, other) is not None) and (state is None or _state(other, state))
            for other in subjects
            if len(pids) > 1 or other.pid not in pids
        )

    def _here(self, subject: Subject) -> list[str] | None:
        """What shows that every key of this process holds; None when one does not."""
        seen: list[str] = []
        for key, pattern in self.stacks.items():
            if key == "other_stack":
                continue
            frame = _in_any(pattern, subject) if key == "thread_stack" else _in_main(pattern, subject)
            if key == "not_stack":
                if frame is not None or not subject.threads():
                    return None
                continue
            if frame is None:
                return None
            seen.append(f"stands in {frame}")
        for key, regex in self.regexes.items():
            if key == "log":
                continue
            text = _text_of(subject.process, key, regex)
            if text is None:
                return None
            seen.append(f"{key} {text}")
        role, state, threads = (self.words.get(key) for key in ("role", "state", "threads"))
        if role is not None and subject.role not in role.split("|"):
            return None
        if state is not None:
            if not _state(subject, state):
                return None
            seen.append(f"state {subject.process.state if subject.process else '?'}")
        if threads is not None and not _has_thread_in(subject.process, threads):
            return None
        return seen


def parse_condition(item: object) -> Condition:
    """A condition from its table. Raises ``TableError`` or ``re.error``."""
    if not isinstance(item, dict) or not item:
        raise TableError(f"a condition must be a table with at least one key, not {item!r}")
    condition = Condition(confidence=None)
    confidence: float | None = None
    for key, value in item.items():
        if key == "confidence" and isinstance(value, (int, float)) and 0 <= value <= 1:
            confidence = float(value)
        elif not isinstance(value, str):
            raise TableError(f"{key} must be a string, not {value!r}")
        elif key in _STACKS:
            condition.stacks[key] = stack_pattern(value)
        elif key in _REGEXES:
            condition.regexes[key] = re.compile(value)
        elif key in _WORDS:
            condition.words[key] = _checked(key, value)
        else:
            raise TableError(f"unknown key {key!r} (known: {', '.join(sorted((*_STACKS, *_REGEXES, *_WORDS)))})")
    if not condition.stacks and not condition.regexes and not condition.words:
        raise TableError("a condition needs something to look at beside its confidence")
    return Condition(condition.stacks, condition.regexes, condition.words, confidence)


def _checked(key: str, value: str) -> str:
    known = {"compilers": ("none", "some"), "ras": RAS_WORDS, "port": PORT_WORDS}.get(key)
    if known is not None and value not in known:
        raise TableError(f"{key} must be one of {', '.join(known)}, not {value!r}")
    return value


def _in_main(pattern: StackPattern, subject: Subject) -> str | None:
    return _in_thread(pattern, subject.threads()[:1])


def _in_any(pattern: StackPattern, subject: Subject) -> str | None:
    return _in_thread(pattern, subject.threads())


def _in_thread(pattern: StackPattern, threads: Sequence[Thread]) -> str | None:
    for thread in threads:
        index = pattern.find(thread.frames)
        if index is not None:
            return thread.frames[index].function
    return None


def _state(subject: Subject, letters: str) -> bool:
    return subject.process is not None and not subject.process.gone and subject.process.state in letters


def _has_thread_in(process: Process | None, letter: str) -> bool:
    return process is not None and any(state[:1] in letter and count > 0 for state, count in process.thread_states)


def _text_of(process: Process | None, key: str, regex: re.Pattern[str]) -> str | None:
    """The first text of this kind that fits, cleaned; None when none does or it cannot be seen."""
    if process is None:
        return None
    for text in _texts(process, key):
        if text and regex.search(text):
            return mask(clean(text, 100))
    return None


def _texts(process: Process, key: str) -> tuple[str, ...]:
    if key == "wchan":
        return (process.wchan or "",)
    if key == "call":
        call = process.call
        return (f"{call.name} {call.target}".strip(),) if call is not None else ()
    if key == "fd":
        return tuple(f"{fd.target} {fd.note}".strip() for fd in process.fds)
    if key == "lock":
        return (process.waits_for_lock,)
    if key == "tcp":
        return tuple(f"{peer.state} {peer.local} -> {peer.remote}" for peer in process.tcp)
    return (process.shards.fstype,) if process.shards is not None else ()


def _compilers(subjects: Sequence[Subject], wanted: str) -> bool:
    processes = [subject.process for subject in subjects if subject.process is not None]
    if not processes:
        return False
    some = any(process.compilers or process.role == "compiler" for process in processes)
    return some == (wanted == "some")


def _ras(ras: RasReading, wanted: str) -> bool:
    if wanted == "mute":
        return ras.answer == "mute" or ras.mute_connections > 0
    comms = ras.communicators if ras.answer == "ok" else ()
    if wanted == "incomplete":
        return any(rank.missing for comm in comms for rank in comm.ranks)
    stuck = ras.unequal_unchanged is True
    return stuck and any(comm.crossed == (wanted == "crossed") for comm in comms if comm.behind)


def _port(port: PortReading, wanted: str) -> bool:
    if wanted == "foreign":
        return any(listener.ours is False for listener in port.listeners)
    return port.answer == wanted
