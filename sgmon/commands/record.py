"""``sgmon record FILE``: record all readings, without a screen, also when the terminal is closed."""

from __future__ import annotations

import argparse
import signal
import socket
from pathlib import Path

from sgmon.commands import FAILED, exit_code_of
from sgmon.commands.hosts import add_host_arguments
from sgmon.commands.live import live_engine, source_of
from sgmon.commands.output import say_no_server
from sgmon.commands.speaker import Speaker
from sgmon.commands.watching import UsageError, add_target_arguments, add_watch_arguments, say_usage, settings_from
from sgmon.discovery import TargetError, find
from sgmon.export.text import progress_line
from sgmon.model import ProbeStatus, Snapshot
from sgmon.recording.writer import NAME, Recorder
from sgmon.signals import told_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target_arguments(parser)
    add_watch_arguments(parser)
    add_host_arguments(parser)
    parser.add_argument("file", metavar="FILE", help="e.g. start.jsonl.gz")
    parser.add_argument("--force", action="store_true", help="write over FILE if it is there already")
    parser.add_argument("--until-end", action="store_true", help="stop when ready, crashed or ended")


def run(args: argparse.Namespace) -> int:
    path = Path(args.file)
    try:
        settings = settings_from(args)
        if path.is_dir():
            raise UsageError(f"{path} is a directory: give a file, e.g. {path}/start.jsonl.gz")
        if not args.force and path.is_file() and path.stat().st_size:
            raise UsageError(f"{path} is there already: give another name, or --force to write over it")
        if settings.pid is not None and not settings.hosts:
            find(Path(settings.proc_root), settings)  # a process that is not there never comes
        source = source_of(settings)
        recorder = Recorder(path, source.epoch, host=socket.gethostname())
    except UsageError as err:
        return say_usage(err)
    except TargetError as err:
        return say_no_server(err)
    except OSError as err:
        return say_usage(UsageError(f"cannot write {path}: {err.strerror}"))
    engine = live_engine(settings, source=source, recorder=recorder)
    speaker = Speaker()
    last = engine.snapshot
    trouble = ""

    def look(snapshot: Snapshot) -> None:
        nonlocal last, trouble
        last = snapshot
        found = _trouble(snapshot)
        if found != trouble:
            speaker.say(f"sgmon: {found}" if found else f"sgmon: {path} is written again")
            trouble = found
        if args.until_end and snapshot.verdict.state in ("ready", "crashed", "ended"):
            source.stop()

    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the terminal may go; the recording stays
    with told_of((signal.SIGTERM, signal.SIGINT), lambda _: source.stop()):
        engine.subscribe(look)
        engine.run_here()
        engine.stop()
    lost = f" ({recorder.trouble().error})" if recorder.trouble().error else ""
    failed = f"{engine.failure}; recorded up to then" if engine.failure else "recorded"
    speaker.say(f"{failed} in {path}{lost}; {progress_line(last)}")
    speaker.close()
    return FAILED if engine.failure or lost else exit_code_of(last)


def _trouble(snapshot: Snapshot) -> str:
    found = snapshot.probe(NAME) or ProbeStatus(NAME)
    return ": ".join(filter(None, (found.error, found.remedy)))
