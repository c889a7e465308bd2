"""Two starts beside each other: where they part, and what was different from the beginning. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sgmon.history.run import Passed, Run

#: arguments that differ between any two starts and explain nothing
_IDLE = frozenset({"random_seed", "nccl_port", "port", "grpc_port", "log_file"})


@dataclass(frozen=True, slots=True)
class Pair:
    """One milestone of one rank in both; None: not there."""

    name: str
    rank: str
    a: Passed | None
    b: Passed | None


@dataclass(frozen=True, slots=True)
class RunDiff:
    """What differs. first_divergence: the first milestone that only one of them has passed.

    slower: the phase in which B lost the most against A, and by how many seconds.
    """

    pairs: tuple[Pair, ...]
    first_divergence: Pair | None
    key: tuple[tuple[str, str, str], ...]
    args: tuple[tuple[str, str, str], ...]
    env: tuple[tuple[str, str, str], ...]
    slower: tuple[str, float] | None


def diff(a: Run, b: Run, phases_a: tuple[tuple[str, float], ...], phases_b: tuple[tuple[str, float], ...]) -> RunDiff:
    """Pairs in the order of the start that went further, what only the other has at its end."""
    mine, theirs = _by_key(a), _by_key(b)
    longer, shorter = (mine, theirs) if len(mine) >= len(theirs) else (theirs, mine)
    keys = [*longer, *(key for key in shorter if key not in longer)]
    pairs = tuple(Pair(name, rank, mine.get((name, rank)), theirs.get((name, rank))) for name, rank in keys)
    spent = dict(phases_a)
    lost = [(phase, took - spent[phase]) for phase, took in phases_b if phase in spent]
    worst = max(lost, key=lambda item: abs(item[1]), default=None)
    names = ("model", "version", "parallel", "gpu", "host", "mount", "caches")
    return RunDiff(
        pairs=pairs,
        first_divergence=next((pair for pair in pairs if pair.a is None or pair.b is None), None),
        key=tuple(
            (name, getattr(a.key, name), getattr(b.key, name))
            for name in names
            if getattr(a.key, name) != getattr(b.key, name)
        ),
        args=tuple(item for item in _changed(a.args, b.args) if item[0].lstrip("-").replace("-", "_") not in _IDLE),
        env=_changed(a.env, b.env),
        slower=worst if worst is not None and abs(worst[1]) >= 0.5 else None,
    )


def _by_key(run: Run) -> dict[tuple[str, str], Passed]:
    return {(one.name, one.rank): one for one in run.milestones}


def _changed(a: tuple[tuple[str, str], ...], b: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str, str], ...]:
    """(name, in A, in B); "-": not there. Nothing when one of them is not known at all."""
    if not a or not b:
        return ()
    mine, theirs = dict(a), dict(b)
    both = [*mine, *(name for name in theirs if name not in mine)]
    return tuple(
        (name, mine.get(name, "-"), theirs.get(name, "-")) for name in both if mine.get(name) != theirs.get(name)
    )
