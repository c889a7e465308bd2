"""``sgmon report``: the evidence bundle, secrets masked, for a bug report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sgmon.commands import FAILED, NO_SERVER, READY, USAGE
from sgmon.commands.bundling import BundleError, make, write, zip_path
from sgmon.commands.live import live_engine
from sgmon.commands.output import say_cut
from sgmon.commands.watching import (
    UsageError,
    add_target_arguments,
    add_watch_arguments,
    say_usage,
    seconds,
    settings_from,
)
from sgmon.discovery import TargetError, find
from sgmon.model import Role, Snapshot
from sgmon.recording.codec import RecordingError
from sgmon.recording.replay import ReplaySource
from sgmon.servers import names
from sgmon.watch.engine import Engine

#: stacks of eight ranks, three samples a second apart
_STACKS_S = 8.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target_arguments(parser)
    add_watch_arguments(parser, takes_stacks=False)
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="", help="default: sgmon-report-TIME-STATE.zip here"
    )
    parser.add_argument("--recording", metavar="FILE", default="", help="of this recording instead of a live server")
    parser.add_argument("--seconds", metavar="S", default="5", help="watch this long first (default 5)")
    parser.add_argument("--no-log", action="store_true", help="no text of the log, neither in the recording")
    parser.add_argument("--no-stacks", action="store_true", help="take no stacks")
    parser.add_argument("--paths", choices=("keep", "hash"), default="keep", help="hash: private paths become hashes")
    parser.add_argument("--dry-run", action="store_true", help="say what would be written and masked, write nothing")


def run(args: argparse.Namespace) -> int:
    try:
        wanted = zip_path("--output", args.output)
        engine = _of_recording(args.recording) if args.recording else _live(args)
    except UsageError as err:
        return say_usage(err)
    except (TargetError, RecordingError) as err:
        print(f"sgmon: {err}", file=sys.stderr)
        return NO_SERVER if isinstance(err, TargetError) else USAGE
    if engine.snapshot.server is None:
        looked = f" ({engine.snapshot.looked_for})" if engine.snapshot.looked_for else ""
        print(f"sgmon: no {names.labels()} server found{looked}. {_newest_flight()}", file=sys.stderr)
        return NO_SERVER
    try:
        bundle = make(
            engine,
            root=args.proc_root,
            made_by="sgmon report",
            log=not args.no_log,
            hash_paths=args.paths == "hash",
        )
        print("\n".join(bundle.words()), file=sys.stderr)
        if args.dry_run:
            return READY
        path = write(bundle, wanted)
    except BundleError as err:
        print(f"sgmon: {err}", file=sys.stderr)
        return FAILED
    except OSError as err:
        named = f" {err.filename}" if err.filename else ""
        print(f"sgmon: cannot write the report{named}: {err.strerror}. Try -o FILE", file=sys.stderr)
        return FAILED
    print(path)
    return READY


def _live(args: argparse.Namespace) -> Engine:
    """Watch for some seconds, with stacks of all ranks."""
    settings = settings_from(args)
    watch_s = seconds("--seconds", args.seconds)
    if settings.pid is not None and not settings.hosts:
        find(Path(settings.proc_root), settings)  # says at once which process is not there
    engine = live_engine(settings, auto_evidence=False, flight_only=True)
    asked = False

    def look(snapshot: Snapshot) -> None:
        nonlocal asked
        ranks = any(process.role in (Role.WORKER, Role.IMPORTING) for process in snapshot.procs.processes)
        if not asked and ranks and not args.no_stacks:
            asked = True
            engine.request_stacks(None, samples=3, why="report")
        done = not asked or (snapshot.stacks_request is not None and snapshot.stacks_request.done)
        if snapshot.t >= watch_s and (done or snapshot.t >= watch_s + _STACKS_S):
            engine.source.stop()

    engine.subscribe(look)
    engine.run_here()
    return engine


def _of_recording(path: str) -> Engine:
    source = ReplaySource(Path(path), speed=0)
    engine = Engine(source)
    engine.run_here()
    if source.is_cut:
        say_cut(path)
    return engine


def _newest_flight() -> str:
    """What to try when the server is gone."""
    from sgmon.recording.ring_buffer import SUFFIX, flights_dir

    try:
        flights = sorted(flights_dir().glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime)
    except OSError:
        flights = []
    return (
        f"The newest recording: sgmon report --recording {flights[-1]}" if flights else "Start it, or use --recording"
    )
