"""Two starts beside each other: where they part, what each had reached when, what was asked for differently."""

from __future__ import annotations

from dataclasses import dataclass

from sgmon.model.log import LogState, Milestone

#: Arguments that differ between any two starts and explain nothing.
_IDLE = ("random_seed", "nccl_port", "port", "grpc_port", "log_file")


@dataclass(frozen=True, slots=True)
class Pair:
    """One milestone of one rank in both logs; ``None``: not there."""

    name: str
    rank: str
    here: Milestone | None
    there: Milestone | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """This log ("here") against a known one ("there")."""

    pairs: tuple[Pair, ...]
    first_divergence: Pair | None
    lines_here: int
    lines_there: int
    args: tuple[tuple[str, str, str], ...]  # name, here, there
    versions: tuple[str, str]


def compare(here: LogState, there: LogState) -> Comparison:
    """Pairs in the order of the known log; milestones that only this one has come last."""
    mine, known = _first(here), _first(there)
    keys = [*known, *(key for key in mine if key not in known)]
    pairs = tuple(Pair(key[0], key[1], mine.get(key), known.get(key)) for key in keys)
    missing = next((pair for pair in pairs if pair.here is None or pair.there is None), None)
    return Comparison(pairs, missing, here.lines, there.lines, _arguments(here, there), (here.version, there.version))


def since_start(state: LogState, milestone: Milestone | None) -> float | None:
    """Seconds from the first dated line to the milestone."""
    if milestone is None or milestone.t is None or state.first_t is None:
        return None
    return milestone.t - state.first_t


def _first(state: LogState) -> dict[tuple[str, str], Milestone]:
    found: dict[tuple[str, str], Milestone] = {}
    for milestone in state.milestones:
        found.setdefault((milestone.name, milestone.rank), milestone)
    return found


def _arguments(here: LogState, there: LogState) -> tuple[tuple[str, str, str], ...]:
    if here.args is None or there.args is None:
        return ()
    mine, known = dict(here.args.raw), dict(there.args.raw)
    both = [*mine, *(name for name in known if name not in mine)]
    return tuple(
        (name, mine.get(name, "-"), known.get(name, "-"))
        for name in both
        if name not in _IDLE and mine.get(name, "-") != known.get(name, "-")
    )
