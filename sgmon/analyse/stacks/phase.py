"""The phase that a stack proves, for when the log is lost (phases.toml)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sgmon.analyse.stacks.pattern import PatternIndex, StackPattern, stack_pattern
from sgmon.analyse.stacks.tables import own_tables, word_list, words
from sgmon.model import Frame, StackDump

#: usual order; where several ranks are in different phases, the server is in the first of them
ORDER = (
    "launch",
    "spawn",
    "dist_init",
    "draft_dist_init",
    "weights",
    "draft_weights",
    "kv_cache",
    "draft_kv_cache",
    "graphs",
    "draft_graphs",
    "disagg",
    "scheduler_ready",
    "http",
    "warmup",
    "ready",
    "serving",
)

_DRAFT = stack_pattern(
    "EAGLEWorker.__init__ | *Draft*.__init__ | EagleDraft* | EAGLEWorker.init_cuda_graphs | maybe_init_draft_worker"
    " | init_draft_* | StandaloneWorker.__init__ | MultiLayerEagle*.__init__ | FrozenKVMTPWorker.__init__"
)
_SERVER_RUNS = stack_pattern("*@uvicorn/ < launch_server | run@runners.py < _setup_and_run_http_server | *@granian/")


@dataclass(frozen=True, slots=True)
class _Rule:
    phase: str
    pattern: StackPattern
    since: tuple[int, ...]
    until: tuple[int, ...]
    draft: bool
    launcher: bool
    threads: bool


def phase_of(dump: StackDump, version: str = "") -> str:
    """A phase word that the stack of this process proves, or "": it proves none.

    "scheduler_ready" is the event loop of a rank: the stack of an idle rank is the same before the port
    opens, while a peer hangs in the warm-up, and when serving. The launcher's server loop without a
    warm-up thread is "ready"; a rank in a forward pass is "warmup". The port tells these apart.
    """
    if not dump.threads:
        return ""
    launcher = dump.role in ("launcher", "tokenizer")
    if not launcher and dump.role not in ("scheduler", "importing", ""):
        return ""
    rules, index = _rules_of(launcher, _version(version))
    for rule in rules:
        if rule.threads and any(rule.pattern.find(thread.frames) is not None for thread in dump.threads):
            return rule.phase
    frames = dump.threads[0].frames
    if launcher and _SERVER_RUNS.find(frames) is not None:
        return "ready"
    return _phase_of_frames(frames, rules, index)


def phase_of_all(dumps: Iterable[StackDump], version: str = "") -> str:
    """The server's phase: the first, in the usual order, of its ranks'; without ranks the launcher's."""
    ranks: list[str] = []
    launcher: list[str] = []
    for dump in dumps:
        phase = phase_of(dump, version)
        if phase:
            (launcher if dump.role in ("launcher", "tokenizer") else ranks).append(phase)
    if ranks:
        first = min(ranks, key=ORDER.index)
        if first == "scheduler_ready" and launcher:  # every rank is in its loop: the launcher knows more
            return max((first, *launcher), key=ORDER.index)
        return first
    return min(launcher, key=ORDER.index, default="")


def phase_frame(frames: Sequence[Frame]) -> int | None:
    """Index of the frame that decides a rank's phase, for any version; None when none does."""
    _, index = _rules_of(False, None)
    found = index.first(frames)
    return found[0] if found else None


def phase_of_frames(frames: Sequence[Frame], version: str = "") -> str:
    """The phase that a rank's main thread proves, or ""."""
    return _phase_of_frames(frames, *_rules_of(False, _version(version)))


def _phase_of_frames(frames: Sequence[Frame], rules: Sequence[_Rule], index: PatternIndex) -> str:
    found = index.first(frames)
    if found is None:
        return ""
    depth, rule = found[0], rules[found[1]]
    is_draft = rule.draft and _DRAFT.find(frames[depth:]) is not None
    return f"draft_{rule.phase}" if is_draft else rule.phase


@lru_cache(maxsize=64)
def _rules_of(launcher: bool, version: tuple[int, ...] | None) -> tuple[tuple[_Rule, ...], PatternIndex]:
    """The rules of one kind of process; of one version, or of all."""
    rules = tuple(
        rule
        for rule in _rules()
        if rule.launcher == launcher and (version is None or rule.since <= version <= rule.until)
    )
    return rules, PatternIndex([rule.pattern for rule in rules])


def _version(text: str) -> tuple[int, ...]:
    """ "0.5.6.post2" -> (0, 5, 6, 2); unknown counts as the newest."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", text.split("+")[0])[:5])
    return numbers or (9999,)


@lru_cache(maxsize=1)
def _rules() -> tuple[_Rule, ...]:
    rules = []
    for entry in own_tables("phases.toml", "phase"):
        until = words(entry, "until")
        rules.append(
            _Rule(
                phase=words(entry, "phase"),
                pattern=stack_pattern(" | ".join(word_list(entry, "frames"))),
                since=_version(words(entry, "since", "0")),
                until=(*_version(until), 9999) if until else (9999, 9999),
                draft=entry.get("draft", True) is True and words(entry, "phase") not in ("spawn", "launch"),
                launcher=words(entry, "role") == "launcher",
                threads=entry.get("threads", False) is True,
            )
        )
    return tuple(rules)
