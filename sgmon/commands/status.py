"""``sgmon status``: one look, one verdict, exit."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from sgmon.analyse.diagnosis.verdict import diagnose
from sgmon.commands import exit_code
from sgmon.commands.live import live_engine
from sgmon.commands.output import print_json, say_no_server
from sgmon.commands.watching import UsageError, add_target_arguments, say_usage, seconds, settings_from
from sgmon.discovery import TargetError, find
from sgmon.export.json import status_report
from sgmon.export.text import as_text
from sgmon.model import Event, Snapshot
from sgmon.watch.engine import Engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object (docs/status.schema.json)")
    parser.add_argument("--seconds", metavar="S", default="0", help="watch this long first (activity needs time)")


def run(args: argparse.Namespace) -> int:
    try:
        settings = settings_from(args)
        watch_s = seconds("--seconds", args.seconds)
        find(Path(settings.proc_root), settings)  # a wrong pid is said at once, in words
    except UsageError as err:
        return say_usage(err)
    except TargetError as err:
        return say_no_server(err, as_json=args.json)
    evidence = settings.auto_evidence and watch_s >= EVIDENCE_S
    engine = live_engine(settings, auto_evidence=evidence, remember=False)
    streams = settings.log_fd is not None or bool(settings.log_command)
    snapshot = look(engine, watch_s, folders=bool(settings.watch_dirs), gpus=settings.gpu, streams=streams)
    if args.json:
        print_json(status_report(snapshot))
    else:
        print("\n".join(as_text(snapshot)))
    return exit_code(snapshot.verdict.state)


def look(
    engine: Engine, watch_s: float, *, folders: bool = False, gpus: bool = False, streams: bool = False
) -> Snapshot:
    """Run the engine until every probe has answered once (or ``GRACE_S`` is over), and ``watch_s`` at least.
    streams: the log comes through a pipe, which is read to its end if that comes in time."""
    seen = engine.snapshot

    def enough(snapshot: Snapshot) -> None:
        nonlocal seen
        seen = snapshot
        whole = complete(snapshot) and (not folders or snapshot.watch_dirs is not None)
        whole = whole and (not gpus or gpus_seen(snapshot))
        whole = whole and (not streams or snapshot.log.change == "ended")
        if snapshot.t >= watch_s and (whole or snapshot.t >= watch_s + GRACE_S):
            engine.source.stop()

    engine.subscribe(enough)
    engine.run_here()
    engine.stop()
    last = engine.store.step(Event(seen.t, "tick"))  # the verdict, with what came after it was last drawn
    if watch_s >= HYSTERESIS_S:
        return last
    # One look has no history, so the verdict is drawn without the delay that keeps a screen from flapping.
    return replace(last, verdict=diagnose(replace(last, verdict=Snapshot().verdict)))


GRACE_S = 1.5
HYSTERESIS_S = 5.0
#: a look shorter than this ends before the first suspicion: no stacks are taken in it
EVIDENCE_S = 15.0


def gpus_seen(snapshot: Snapshot) -> bool:
    """Whether NVML has answered, or why it cannot: who holds GPU memory matters before there is a server, too."""
    return bool(snapshot.gpu.source or snapshot.gpu.unavailable)


def complete(snapshot: Snapshot) -> bool:
    """Whether one look has seen what there is to see."""
    if not snapshot.looked_for and snapshot.server is None:
        return False
    if snapshot.server is None:
        return True
    log_seen = (
        snapshot.log.size is not None
        or snapshot.server.log_kind not in ("file", "deleted")
        or any(status.name == "log" for status in snapshot.probes)
    )
    gpu_seen = bool(snapshot.gpu.gpus or snapshot.gpu.unavailable) or not any(
        status.name == "gpu" for status in snapshot.probes
    )
    return bool(snapshot.procs.processes) and snapshot.port is not None and log_seen and gpu_seen
