"""``sgmon diff A B``: two starts beside each other, each a start of the history, a log or a recording."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from sgmon.commands import FAILED, READY, USAGE
from sgmon.commands import log as log_command
from sgmon.commands.output import print_json, say_cut
from sgmon.history import from_snapshot
from sgmon.history.compare import as_lines, compare
from sgmon.history.database import DatabaseError, StartDatabase
from sgmon.history.finished_start import FinishedStart
from sgmon.recording import codec
from sgmon.recording.replay import ReplaySource
from sgmon.watch.engine import Engine


class _SideError(Exception):
    """One of the two cannot be read: one sentence that says why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "an id of `sgmon runs`, a log, or a recording"
    parser.add_argument("a", metavar="A", help=what)
    parser.add_argument("b", metavar="B", help=what)
    parser.add_argument("--json", action="store_true", help="one JSON object (schema 1)")


def run(args: argparse.Namespace) -> int:
    try:
        a, b = side(args.a), side(args.b)
    except DatabaseError as err:
        print(f"sgmon: {err.words}. {err.remedy}", file=sys.stderr)
        return FAILED
    except _SideError as err:
        print(f"sgmon diff: {err}", file=sys.stderr)
        return USAGE
    diff = compare(a, b)
    if args.json:
        body = {"schema": 1, "a": _head(a, args.a), "b": _head(b, args.b), **msgspec.to_builtins(diff)}
        print_json(body)
    else:
        print("\n".join(as_lines(diff, a, b, args.a, args.b)))
    return READY


def side(word: str) -> FinishedStart:
    """The start that an argument names: an id, a recording or a log. Raises _SideError."""
    path = Path(word)
    if word.isdigit() and not path.exists():
        found = StartDatabase().get(int(word))
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
    if word != "-" and not path.exists():
        raise _SideError(f"cannot read {word!r}: no file, and no id of `sgmon runs`: check the path")
    try:
        return from_snapshot.start_of_log(log_command.read(word), word)
    except log_command.UnreadableError as err:
        raise _SideError(str(err)) from err


def _of_recording(path: Path) -> FinishedStart:
    source = ReplaySource(path, speed=0)
    engine = Engine(source)
    engine.run_here()
    if source.is_cut:
        say_cut(str(path))
    snapshot = engine.snapshot
    if snapshot.server is None:
        raise _SideError(f"{path} has seen no server")
    return from_snapshot.start_of(snapshot, from_snapshot.outcome_of(snapshot) or "unfinished")


def _head(one: FinishedStart, name: str) -> dict[str, object]:
    return {
        "name": name,
        "outcome": one.outcome,
        "s": one.duration_s,
        "lines": one.lines,
        **msgspec.to_builtins(one.key),
    }
