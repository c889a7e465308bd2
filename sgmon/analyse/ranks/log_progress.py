"""How far each rank has come by its own lines, counting only lines that every rank prints.

Some lines come from tp rank 0 alone, which ones depends on the version: "TP1 is behind TP0" is a false finding then.
"""

from __future__ import annotations

from functools import lru_cache

from sgmon.analyse.log import catalogue
from sgmon.model import LogState
from sgmon.servers.phases import PhaseTable

Progress = tuple[int, bool]


def progress_of(log: LogState, ranks: tuple[str, ...], version: str, phases: PhaseTable) -> dict[str, Progress]:
    """rank -> (order of the phase, whether its end was printed); a rank without a comparable line is left out."""
    found: dict[str, Progress] = {}
    wanted = frozenset(ranks)  # every rank has its milestones: a search for each would be the square of their number
    printed: dict[str, bool] = {}  # by all
    for milestone in log.milestones:
        name = milestone.name
        if milestone.rank not in wanted:
            continue
        if name not in printed:
            printed[name] = _all_print(log.family, version, name, ranks)
        if not printed[name]:
            continue
        here = phases.order(milestone.phase), milestone.event == "end"
        found[milestone.rank] = max(found.get(milestone.rank, (-1, False)), here)
    return found


@lru_cache(maxsize=512)
def _all_print(family: str, version: str, milestone: str, ranks: tuple[str, ...]) -> bool:
    known = catalogue.of_family(family)
    return not any(known.silent_by_design(version, milestone, rank) for rank in ranks)
