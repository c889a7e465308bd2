"""The phase that a stack proves, for when the log is lost (``stack_phases.toml`` of the family)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct

from sgmon.analyse.memo import WeakMemo
from sgmon.analyse.stacks.pattern import PatternIndex, StackPattern, stack_pattern
from sgmon.model import Frame, StackDump
from sgmon.model.roles import Role
from sgmon.servers.family import StackRules
from sgmon.tables import parse_rows, text_of
from sgmon.versions import release

FILE = "stack_phases.toml"
_LAUNCHERS = frozenset({Role.LAUNCHER, Role.TOKENIZER})
_RANKS = frozenset({Role.WORKER, Role.IMPORTING})
_NEWEST = 9999


class PhaseRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of ``stack_phases.toml``; the file says what the fields mean."""

    phase: str
    frames: tuple[str, ...]
    since: str = "0"
    until: str = ""
    draft: bool = True
    launcher: bool = False
    threads: bool = False


class _Compiled(Struct, frozen=True):
    """The rows of one kind of process in one version, ready to be matched."""

    rows: tuple[PhaseRow, ...]
    patterns: tuple[StackPattern, ...]
    index: PatternIndex
    draft: StackPattern | None
    serving: StackPattern | None


_phases: WeakMemo[str] = WeakMemo()


def phase_of(dump: StackDump, version: str, rules: StackRules) -> str:
    """A phase word that the stack of this process proves, or "": it proves none.

    The event loop of a rank is the end of its own start: the stack of an idle rank is the same before the port opens,
    while a peer hangs in the warm-up, and when serving. The launcher's server loop without a warm-up thread is
    "ready"; a rank in a forward pass is "warmup". The port tells these apart.
    """
    if not dump.threads or not rules.folder:
        return ""
    return _phases.get((dump,), (rules, version), lambda: _phase_of(dump, version, rules))


def _phase_of(dump: StackDump, version: str, rules: StackRules) -> str:
    launcher = is_launcher(dump)
    if not launcher and dump.role not in _RANKS:
        return ""
    compiled = _compiled(rules, launcher, _version(version))
    for row, pattern in zip(compiled.rows, compiled.patterns, strict=True):
        if row.threads and any(pattern.find(thread.frames) is not None for thread in dump.threads):
            return row.phase
    frames = dump.threads[0].frames
    if launcher and compiled.serving is not None and compiled.serving.find(frames) is not None:
        return "ready"
    return _phase_of_frames(frames, compiled)


def is_launcher(dump: StackDump) -> bool:
    """Whether this process starts the ranks and answers HTTP."""
    return dump.role in _LAUNCHERS


def phase_of_all(dumps: Iterable[StackDump], version: str, rules: StackRules) -> str:
    """The server's phase: the first, in the usual order, of its ranks'; without ranks the launcher's."""
    ranks: list[str] = []
    launcher: list[str] = []
    for dump in dumps:
        phase = phase_of(dump, version, rules)
        if phase:
            (launcher if is_launcher(dump) else ranks).append(phase)
    if ranks:
        first = min(ranks, key=rules.order.index)
        if first == "scheduler_ready" and launcher:  # every rank is in its loop: the launcher knows more
            return max((first, *launcher), key=rules.order.index)
        return first
    return min(launcher, key=rules.order.index, default="")


def phase_frame(frames: Sequence[Frame], rules: StackRules) -> int | None:
    """Index of the frame that decides a rank's phase, for any version; None when none does."""
    found = _compiled(rules, False, None).index.first(frames) if rules.folder else None
    return found[0] if found else None


def phase_of_frames(frames: Sequence[Frame], rules: StackRules) -> str:
    """The phase that a rank's main thread proves in the newest version, or ""."""
    return _phase_of_frames(frames, _compiled(rules, False, (_NEWEST,))) if rules.folder else ""


def in_loop(frames: Sequence[Frame], rules: StackRules) -> bool:
    """Whether a started rank was in its loop, in which it waits for work; True where the family does not tell."""
    return not rules.loops or stack_pattern(rules.loops).find(frames) is not None


def launcher_phase_of_frames(frames: Sequence[Frame], rules: StackRules) -> str:
    """The same of the process that starts the ranks, or ""."""
    return _phase_of_frames(frames, _compiled(rules, True, (_NEWEST,))) if rules.folder else ""


def _phase_of_frames(frames: Sequence[Frame], compiled: _Compiled) -> str:
    found = compiled.index.first(frames)
    if found is None:
        return ""
    depth, row = found[0], compiled.rows[found[1]]
    may_be_draft = row.draft and row.phase not in ("spawn", "launch") and compiled.draft is not None
    is_draft = may_be_draft and compiled.draft is not None and compiled.draft.find(frames[depth:]) is not None
    return f"draft_{row.phase}" if is_draft else row.phase


@lru_cache(maxsize=64)
def _compiled(rules: StackRules, launcher: bool, version: tuple[int, ...] | None) -> _Compiled:
    """The rows of one kind of process; of one version, or of all."""
    rows = tuple(
        row
        for row in _rows(rules.folder)
        if row.launcher == launcher and (version is None or _version(row.since) <= version <= _last(row.until))
    )
    patterns = tuple(stack_pattern(" | ".join(row.frames)) for row in rows)
    draft, serving = (stack_pattern(text) if text else None for text in (rules.draft, rules.serving))
    return _Compiled(rows, patterns, PatternIndex(patterns), draft, serving)


@lru_cache(maxsize=8)
def _rows(folder: str) -> tuple[PhaseRow, ...]:
    return parse_rows(text_of(folder, FILE), "phase", PhaseRow, f"{folder}/{FILE}")


def _version(text: str) -> tuple[int, ...]:
    """ "0.5.6.post2" -> (0, 5, 6, 2); unknown counts as the newest."""
    return release(text) or (_NEWEST,)


def _last(until: str) -> tuple[int, ...]:
    """The end of a range of versions that is still in it: all post releases are."""
    return (*_version(until)[:3], _NEWEST) if until else (_NEWEST, _NEWEST)
