"""``sgmon diff A B``: two starts beside each other, each a start of the history, a log or a recording."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import msgspec

from sgmon import units
from sgmon.commands import FAILED, READY, USAGE
from sgmon.commands import log as log_command
from sgmon.history import compare, from_snapshot
from sgmon.history.database import History, HistoryError
from sgmon.history.run import Passed, Run
from sgmon.recording import codec
from sgmon.recording.replay import ReplaySource
from sgmon.watch.engine import Engine

HELP = "compare two starts"


class _SideError(Exception):
    """One of the two cannot be read: words."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "an id of `sgmon runs`, a log, or a recording"
    parser.add_argument("a", metavar="A", help=what)
    parser.add_argument("b", metavar="B", help=what)
    parser.add_argument("--json", action="store_true", help="one JSON object (schema 1)")


def run(args: argparse.Namespace) -> int:
    try:
        a, b = side(args.a), side(args.b)
    except HistoryError as err:
        print(f"sgmon: {err.words}. {err.remedy}", file=sys.stderr)
        return FAILED
    except _SideError as err:
        print(f"sgmon diff: {err}", file=sys.stderr)
        return USAGE
    found = compare.diff(a, b, from_snapshot.phases_of(a), from_snapshot.phases_of(b))
    if args.json:
        body = {"schema": 1, "a": _head(a, args.a), "b": _head(b, args.b), **dataclasses.asdict(found)}
        sys.stdout.buffer.write(msgspec.json.encode(body) + b"\n")
    else:
        print("\n".join(as_lines(found, a, b, args.a, args.b)))
    return READY


def side(word: str) -> Run:
    """The start that a word on the command line means."""
    path = Path(word)
    if word.isdigit() and not path.exists():
        found = History().get(int(word))
        if found is None:
            raise _SideError(f"no start {word}: sgmon runs lists them")
        return found
    if path.is_file():
        try:
            codec.read_header(path)
        except codec.RecordingError:
            pass
        else:
            return _of_recording(path)
    try:
        return from_snapshot.run_of_log(log_command.read(word), word)
    except log_command.UnreadableError as err:
        raise _SideError(str(err)) from err


def as_lines(found: compare.RunDiff, a: Run, b: Run, name_a: str, name_b: str) -> list[str]:
    lines = [f"A  {name_a}: {_words(a)}", f"B  {name_b}: {_words(b)}", ""]
    first = found.first_divergence
    if first is None:
        lines.append("Both have passed the same milestones.")
    else:
        has, lacks = ("A", "B") if first.b is None else ("B", "A")
        there = first.a or first.b
        rank = f" {first.rank}" if first.rank else ""
        lines.append(f"First divergence:{rank} {first.name} is in {has} ({_place(there)}) and not in {lacks}.")
    if found.slower is not None:
        phase, lost = found.slower
        word = "longer" if lost > 0 else "shorter"
        lines.append(f"Largest difference: {phase} took {units.duration(abs(lost))} {word} in B.")
    for title, rows in (("Differs", found.key), ("Arguments", found.args), ("Settings", found.env)):
        if rows:
            lines += [
                "",
                f"{title} (A | B):",
                *(f"  {name}: {one or '?'}  |  {two or '?'}" for name, one, two in rows),
            ]
    lines += ["", f"{'milestone':<26}{'rank':<12}{'A':>20}{'B':>20}"]
    lines += [f"{p.name:<26}{p.rank:<12}{_place(p.a):>20}{_place(p.b):>20}" for p in found.pairs]
    return lines


def _of_recording(path: Path) -> Run:
    engine = Engine(ReplaySource(path, speed=0))
    engine.run_here()
    snapshot = engine.snapshot
    if snapshot.server is None:
        raise _SideError(f"{path} has seen no server")
    return from_snapshot.run_of(snapshot, from_snapshot.outcome_of(snapshot) or "unfinished")


def _words(one: Run) -> str:
    took = units.duration(one.duration_s)
    return (
        f"{one.outcome} after {took}, {one.lines} lines, SGLang {one.key.version or '?'}, {one.key.parallel or '?'}"
    )


def _place(passed: Passed | None) -> str:
    return "-" if passed is None else f"line {passed.line} +{units.duration(passed.at_s)}"


def _head(one: Run, name: str) -> dict[str, object]:
    return {
        "name": name,
        "outcome": one.outcome,
        "s": one.duration_s,
        "lines": one.lines,
        **dataclasses.asdict(one.key),
    }
