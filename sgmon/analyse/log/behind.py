"""Which ranks others have left behind in a start, by the milestones that each of them has passed."""

from __future__ import annotations

from collections.abc import Callable

from sgmon.analyse.log.ranks import Milestones


def left_behind(milestones: Milestones, prints: Callable[[str, str], bool]) -> tuple[str, tuple[str, ...]]:
    """The earliest phase of ranks that others have left, and those ranks; "" where none is behind.

    prints: (milestone, rank) -> whether the rank would have printed it.
    """
    if milestones.is_over:
        return "", ()
    passed: dict[str, list[str]] = {}
    for made in milestones.found:
        if made.rank and made.event in ("begin", "end") and milestones.phases.order(made.phase) >= 0:
            names = passed.setdefault(made.rank, [])
            if made.name not in names:
                names.append(made.name)
    ways = {tuple(names) for names in passed.values()}  # few: most ranks have passed the same
    late: dict[str, str] = {}
    for rank, own in passed.items():
        track = milestones.tracks.get(rank)
        if track is None or track.inferred or not track.phase or rank in late:
            continue
        ahead = {
            name
            for names in ways
            if (at := _after(own[-1], names)) is not None
            for name in names[at:]
            if name not in own and not name.startswith("draft_")
        }
        if any(prints(name, rank) for name in ahead):
            late[rank] = track.phase
    if not late:
        return "", ()
    first = min(late.values(), key=milestones.phases.order)
    return first, tuple(rank for rank, phase in late.items() if phase == first)


def _after(name: str, names: tuple[str, ...]) -> int | None:
    """Where what follows milestone ``name`` begins in what another rank has passed; None: it has not passed it.

    Its end tells as well as its begin, which may stand before the text.
    """
    if name in names:
        return names.index(name) + 1
    end = name.removesuffix("_begin") + "_end"
    return names.index(end) if name.endswith("_begin") and end in names else None
