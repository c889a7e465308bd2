"""``sgmon runs``: finished starts on this machine, newest first."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from typing import Any

import msgspec

from sgmon import units
from sgmon.commands import FAILED, READY, USAGE
from sgmon.commands.output import print_json
from sgmon.history import from_snapshot
from sgmon.history.database import DatabaseError, StartDatabase
from sgmon.history.finished_start import FinishedStart


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", type=int, help="this start in full")
    parser.add_argument("--model", default="", metavar="TEXT", help="only models whose name holds this")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many (default 20)")
    parser.add_argument("--json", action="store_true", help="one JSON object (schema 1)")


def run(args: argparse.Namespace) -> int:
    if args.limit < 1:
        print(f"sgmon: --limit {args.limit} is out of range: try --limit 20", file=sys.stderr)
        return USAGE
    history = StartDatabase()
    try:
        if args.id is not None:
            one = history.get(args.id)
            if one is None:
                print(f"sgmon: no start {args.id}: sgmon runs lists them", file=sys.stderr)
                return USAGE
            runs = [one]
        else:
            runs = history.runs(args.limit, args.model)
    except DatabaseError as err:
        print(f"sgmon: {err.words}. {err.remedy}", file=sys.stderr)
        return FAILED
    if args.json:
        print_json({"schema": 1, "runs": [_object(one) for one in runs]})
    elif args.id is not None:
        print("\n".join(full(runs[0])))
    elif runs:
        print("\n".join(table(runs)))
    else:
        print(
            "no finished start yet: one is added whenever sgmon, sgmon wait or sgmon record has watched a server "
            "to its end (none of sgmon demo is kept)"
        )
    return READY


def table(runs: list[FinishedStart]) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("id", "when", "outcome", "took", "lines", "model", "sizes", "version", "GPU", "caches")
    ]
    rows += [_row(one) for one in runs]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(one: FinishedStart) -> tuple[str, ...]:
    sizes = one.key.parallel.replace(" dp1", "").replace(" pp1", "").replace(" n1", "")
    return (
        str(one.id),
        f"{datetime.fromtimestamp(one.started):%m-%d %H:%M}",
        one.outcome + (" (said to fail)" if one.foretold else ""),
        units.duration(one.duration_s),
        str(one.lines),
        one.key.model.rstrip("/").rsplit("/", 1)[-1][:36] or "?",
        sizes or "?",
        one.key.version or "?",
        one.key.gpu or "?",
        one.key.caches or "?",
    )


def full(one: FinishedStart) -> list[str]:
    """One start with all that is kept of it."""
    key = one.key
    lines = [
        f"start {one.id}: {one.outcome} after {units.duration(one.duration_s)}, {one.lines} lines: {one.headline}",
        f"begun    {datetime.fromtimestamp(one.started):%Y-%m-%d %H:%M:%S} on {key.host or '?'}, pid {one.pid}",
        f"model    {key.model}, {key.parallel}, version {key.version or '?'}",
        f"GPU      {key.gpu or '?'}; model on {key.mount or '?'}, caches {key.caches or 'not known'}",
        f"log      {one.log or '?'}",
    ]
    if one.foretold:
        rules = ", ".join(one.foretold)
        lines.append(f"wrong    sgmon said that it would fail ({rules}): a defect of sgmon, please report it")
    if one.gaps:
        lines.append("silence  " + ", ".join(f"{units.duration(s)} after line {line}" for s, line in one.gaps))
    for what, ours, theirs in from_snapshot.compared_with_own(one):
        lines.append(
            f"check    {what}: {units.duration(ours)} as seen, {units.duration(theirs)} by the server itself"
        )
    lines += ["", "phases"] + [f"  {phase:16} {units.duration(s):>8}" for phase, s in one.phases]
    lines += ["", "milestones (after, line)"]
    lines += [f"  {units.duration(m.at_s):>8}  {m.line:>5}  {m.name} {m.rank}".rstrip() for m in one.milestones]
    lines += ["", "settings"] + [f"  {name}={value}" for name, value in one.env]
    lines += ["", "arguments"] + [f"  {name} = {value}" for name, value in one.args]
    return lines


def _object(one: FinishedStart) -> dict[str, Any]:
    body = msgspec.to_builtins(one)
    key = body.pop("key")
    return {"id": body.pop("id"), **key, **body, "phases": one.phases}
