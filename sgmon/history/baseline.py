"""What is usual: median and p90 of the last ten ready starts of a key, else of a wider one. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from sgmon.history.finished_start import FinishedStart, PassedMilestone, StartKey
from sgmon.model import Baseline, Usual, UsualPhase
from sgmon.model.plan import MemoryTaken

#: how many finished starts make a baseline
STARTS = 10

#: narrow to wide: which parts of the key must be equal, and how that is said
WIDENING: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("model", "flags", "version", "parallel", "gpu", "host", "mount", "caches"),
        "same model, flags, version, parallel sizes, GPU, host, mount and caches",
    ),
    (
        ("model", "flags", "version", "parallel", "gpu", "host"),
        "same model, flags, version, parallel sizes, GPU and host; other caches",
    ),
    (
        ("model", "flags", "parallel", "gpu", "host"),
        "same model, flags, parallel sizes, GPU and host; another version",
    ),
    (("model", "flags", "parallel", "gpu"), "same model, flags, parallel sizes and GPU; another host"),
)


def baseline(runs: Sequence[FinishedStart], key: StartKey) -> Baseline | None:
    """``runs``: newest first. None while no ready start is alike: then there is no number."""
    ready = [run for run in runs if run.outcome == "ready"]
    for names, words in WIDENING:
        alike = [run for run in ready if all(getattr(run.key, name) == getattr(key, name) for name in names)]
        if alike:
            return summed(alike[:STARTS], words, narrow=(names, words) == WIDENING[0])
    return None


def summed(runs: Sequence[FinishedStart], words: str, *, narrow: bool = False) -> Baseline:
    """The baseline of these starts."""
    durations = [run.duration_s for run in runs if run.duration_s is not None]
    return Baseline(
        like=words,
        count=len(runs),
        narrow=narrow,
        ready_median_s=statistics.median(durations) if durations else None,
        ready_p90_s=p90(durations) if durations else None,
        longest_quiet_s=p90([run.quiet_s for run in runs if run.quiet_s is not None]),
        lines=round(statistics.median(run.lines for run in runs)),
        milestones=_milestones(runs),
        phases=_phases(runs),
        memory=_memory([one for run in runs if (one := run.memory) is not None]),
        memory_count=sum(run.memory is not None for run in runs),
    )


def _memory(taken: Sequence[MemoryTaken]) -> MemoryTaken | None:
    """The median of each number over the starts that have it."""
    if not taken:
        return None
    known = {
        name: [value for one in taken if (value := getattr(one, name)) is not None]
        for name in MemoryTaken.__struct_fields__
    }
    return MemoryTaken(**{name: round(statistics.median(values)) for name, values in known.items() if values})


def p90(values: Sequence[float]) -> float | None:
    """The value that nine of ten are not above (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-9 * len(ordered) // 10) - 1))] if ordered else None


def _milestones(runs: Sequence[FinishedStart]) -> tuple[Usual, ...]:
    """Of each milestone the first rank that passed it."""
    found: dict[str, list[PassedMilestone]] = {}
    for run in runs:
        seen: set[str] = set()
        for one in run.milestones:
            if one.name not in seen:
                seen.add(one.name)
                found.setdefault(one.name, []).append(one)
    usual = [
        Usual(
            name=name,
            median_s=statistics.median(one.at_s for one in all_),
            p90_s=p90([one.at_s for one in all_]) or 0.0,
            line=round(statistics.median(one.line for one in all_)),
            count=len(all_),
        )
        for name, all_ in found.items()
    ]
    return tuple(sorted(usual, key=lambda one: (one.median_s, one.line)))


def _phases(runs: Sequence[FinishedStart]) -> tuple[UsualPhase, ...]:
    found: dict[str, list[float]] = {}
    for run in runs:
        for phase, took_s in run.phases:
            found.setdefault(phase, []).append(took_s)
    return tuple(
        UsualPhase(phase, round(statistics.median(all_), 3), p90(all_) or 0.0) for phase, all_ in found.items()
    )
