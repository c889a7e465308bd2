"""Every row of ``python -m benchmarks``: a name, what is ours, which peer stands beside it, and the budget.

Rows that need the same set-up are a group. A round of a group measures all its programs, in turns or at the same
time, so that what else the machine does hits all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BUDGETS = Path(__file__).with_name("budgets.toml")

#: unit -> value, of one program in one round; a unit that could not be measured is left out
Values = dict[str, float]
#: program -> its values
Round = Callable[[], dict[str, Values]]


@dataclass(frozen=True, slots=True)
class Options:
    """quick: smaller inputs and shorter windows, for a look; its numbers are not written down."""

    quick: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One ratio: ours over the peer's, in this unit."""

    group: str
    ours: str
    peer: str
    unit: str

    @property
    def name(self) -> str:
        return f"{self.group}:{self.ours}:{self.peer}:{self.unit}".replace(",", "").replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one set-up.

    title: for the table. prepare: yields the round. rounds: how many count; a first one, that warms caches and
    writes byte code, does not.
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    prepare: Callable[[Options], AbstractContextManager[Round]]
    rounds: int = 5
    quick_rounds: int = 2
    warm: bool = True


def rows_of(group: str, pairs: str, *units: str) -> tuple[Row, ...]:
    """Rows of a group; pairs: "ours/peer, ours/peer" as its round names the programs."""
    found = []
    for pair in pairs.split(","):
        ours, _, peer = pair.strip().partition("/")
        found += [Row(group, ours, peer, unit) for unit in units]
    return tuple(found)


def in_turns(programs: dict[str, Callable[[], Values]]) -> Round:
    """A round that measures one program after the other."""
    return lambda: {name: measure() for name, measure in programs.items()}


def groups() -> tuple[Group, ...]:
    """All of them, in the order of the table."""
    from benchmarks.rows import following, growth, keys, opening, reading, stacks, starting, watching

    modules = (starting, watching, opening, following, reading, stacks, keys, growth)
    return tuple(group for module in modules for group in module.GROUPS)


def chosen(names: list[str]) -> Iterator[tuple[Group, tuple[Row, ...]]]:
    """The groups with the rows that are asked for by the name of a group, of a row, or the beginning of one.

    Raises ValueError for a name that fits nothing.
    """
    every = groups()
    known = [row.name for group in every for row in group.rows]
    for name in names:
        if not any(row.startswith(name) for row in known):
            raise ValueError(f"no row begins with {name!r}; there are:\n" + "\n".join(known))
    for group in every:
        rows = tuple(row for row in group.rows if not names or any(row.name.startswith(name) for name in names))
        if rows:
            yield group, rows


def budgets(path: Path = BUDGETS) -> dict[str, float]:
    """Name of a row -> the most that its ratio may be."""
    data = tomllib.loads(path.read_text())
    return {f"{group}:{row}": float(most) for group, rows in data.items() for row, most in rows.items()}
