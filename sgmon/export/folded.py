"""Lines about many nodes, ranks and GPUs: those that say the same are one line. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from sgmon.units import lasting, plural, rank_list

#: so many lines are told one by one
FEW = 24
ALL = "equal nodes, ranks and GPUs are one line each: sgmon status --all has a line for every one"


class Row(Struct, frozen=True):
    """One line and what it says. whole: the line by itself; key: equal ones may be one line; words: what such a line
    says after the names; since_s: an age that may differ; ranks: names of the ranks that it is about."""

    whole: str
    key: tuple[object, ...]
    node: str
    words: str
    ranks: tuple[str, ...] = ()
    since_s: float | None = None
    used: tuple[float, float] | None = None  # GiB, of a GPU: used and total


def lines(rows: Sequence[Row], noun: str) -> Iterator[str]:
    """The rows, equal ones as one line. noun: what one row is about ("process", "GPU", "node")."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.key, []).append(row)
    for group in groups.values():
        yield group[0].whole if len(group) == 1 else _joined(group, noun)


def _joined(group: Sequence[Row], noun: str) -> str:
    """ "512 processes on 64 nodes, TP0-511: S in futex_wait, last activity: bytes 10s to 40s ago"."""
    nodes = list(dict.fromkeys(row.node for row in group))
    where = f" on {nodes[0] if len(nodes) == 1 else plural(len(nodes), 'node')}" if noun != "node" else ""
    ranks = rank_list([rank for row in group for rank in row.ranks])
    count = f"{len(group)} {noun}{'es' if noun.endswith('s') else 's'}"
    named = f"{nodes[0]} to {nodes[-1]}" if noun == "node" else ranks
    return f"{count}{where}{f', {named}' if named else ''}: {group[0].words}{_used(group)}{_ages(group)}"


def _ages(group: Sequence[Row]) -> str:
    known = [row.since_s for row in group if row.since_s is not None]
    if not known:
        return ""
    first, last = lasting(min(known)), lasting(max(known))
    return f" {last} ago" if first == last else f" {first} to {last} ago"


def _used(group: Sequence[Row]) -> str:
    known = [row.used for row in group if row.used is not None]
    if not known:
        return ""
    least, most, total = min(known)[0], max(known)[0], known[0][1]
    used = f"{least:.1f}" if f"{least:.1f}" == f"{most:.1f}" else f"{least:.1f} to {most:.1f}"
    return f"{used}/{total:.1f} GiB"
