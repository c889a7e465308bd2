"""Runs the rounds of a group and makes ratios of them."""

from __future__ import annotations

import os
import statistics
import sys
import time
from dataclasses import dataclass

from benchmarks.peers import MissingPeerError
from benchmarks.registry import Group, Options, Round, Row, Values


@dataclass(frozen=True, slots=True)
class Result:
    """A row after its rounds. ratio: median of the rounds' ratios. why: what kept it from being measured."""

    row: Row
    ratio: float | None = None
    ours: float | None = None
    peer: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    load: float = 0.0
    why: str = ""


def run(group: Group, rows: tuple[Row, ...], options: Options) -> list[Result]:
    """Measure all rows of a group; one that has no peer here says so."""
    count = group.quick_rounds if options.quick else group.rounds
    loads = [os.getloadavg()[0]]
    try:
        with group.prepare(options) as measure:
            rounds = _rounds(measure, count, group.warm, loads)
    except MissingPeerError as err:
        return [Result(row, why=str(err)) for row in rows]
    load = statistics.mean(loads)
    return [_result(row, rounds, load) for row in rows]


def _rounds(measure: Round, count: int, warm: bool, loads: list[float]) -> list[dict[str, Values]]:
    found = []
    for number in range(count + warm):
        began = time.monotonic()
        values = measure()
        loads.append(os.getloadavg()[0])
        if number or not warm:
            found.append(values)
        say = "warm" if warm and not number else f"{len(found)}/{count}"
        print(f"  round {say}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return found


def _result(row: Row, rounds: list[dict[str, Values]], load: float) -> Result:
    pairs = [
        (one[row.ours][row.unit], one[row.peer][row.unit])
        for one in rounds
        if row.unit in one.get(row.ours, {}) and one.get(row.peer, {}).get(row.unit)
    ]
    if not pairs:
        without = row.peer if not any(row.unit in one.get(row.peer, {}) for one in rounds) else row.ours
        return Result(row, load=load, why=f"{without}: no value in any round")
    ratios = [ours / peer for ours, peer in pairs]
    return Result(
        row,
        statistics.median(ratios),
        statistics.median(ours for ours, _ in pairs),
        statistics.median(peer for _, peer in pairs),
        min(ratios),
        max(ratios),
        len(pairs),
        load,
        "" if len(pairs) == len(rounds) else f"{len(rounds) - len(pairs)} of {len(rounds)} rounds have no value",
    )
