"""``sgmon status``: one look, one verdict, exit."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from sgmon.analyse.diagnosis.ready import SETTLED_S
from sgmon.analyse.diagnosis.stopped import TRACED_S
from sgmon.analyse.diagnosis.verdict import diagnose
from sgmon.analyse.store import Store
from sgmon.collect.source import LiveSource
from sgmon.commands import NOT_READY, READY, exit_code_of
from sgmon.commands.hosts import add_host_arguments
from sgmon.commands.live import live_engine
from sgmon.commands.output import print_json, say_no_server
from sgmon.commands.watching import (
    UsageError,
    add_target_arguments,
    add_watch_arguments,
    say_usage,
    seconds,
    settings_from,
)
from sgmon.discovery import TargetError, find
from sgmon.export.fleet.answers import CHECKS, answer
from sgmon.export.json import status_report
from sgmon.export.text import as_text
from sgmon.model import Event, Evidence, NextStep, ProbeStatus, Snapshot, Verdict
from sgmon.settings import Settings
from sgmon.units import duration
from sgmon.watch.engine import Engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target_arguments(parser)
    add_watch_arguments(parser)
    add_host_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object (docs/status.schema.json)")
    parser.add_argument("--all", action="store_true", help="a line for every rank and GPU of many nodes")
    parser.add_argument(
        "--probe",
        choices=CHECKS,
        default="",
        help="for an orchestrator: print one check as JSON; exit code 0 when it is ok",
    )
    parser.add_argument("--seconds", metavar="S", default="0", help="watch this long first (activity needs time)")


def run(args: argparse.Namespace) -> int:
    try:
        settings = settings_from(args)
        watch_s = seconds("--seconds", args.seconds)
        # a wrong pid is said at once, in words
        found = None if settings.hosts else find(Path(settings.proc_root), settings)
    except UsageError as err:
        return say_usage(err)
    except TargetError as err:
        return say_no_server(err, as_json=args.json)
    evidence = settings.auto_evidence and watch_s >= EVIDENCE_S
    source = None if settings.hosts else LiveSource(settings, found=found, one_look=watch_s < HYSTERESIS_S)
    engine = live_engine(settings, source=source, auto_evidence=evidence, remember=False)
    snapshot = look(engine, watch_s, asked_of(settings))
    if args.probe:
        said = answer(args.probe, snapshot, hold_s=0.0)  # within one look a stall has held as long as it could
        print_json(said)
        return READY if said.ok else exit_code_of(snapshot) or NOT_READY
    if args.json:
        print_json(status_report(snapshot))
    else:
        print("\n".join(as_text(snapshot, args.all)))
    return exit_code_of(snapshot)


class Asked(NamedTuple):
    """What a look waits for beside the server, its processes, log and port. streams: the log comes through a pipe,
    which is read to its end if that comes in time."""

    folders: bool = False
    gpus: bool = False
    streams: bool = False
    hosts: int = 0  # other machines


NOTHING_MORE = Asked()


def asked_of(settings: Settings) -> Asked:
    streams = settings.log_fd is not None or bool(settings.log_command)
    return Asked(bool(settings.watch_dirs), settings.gpu, streams, len(settings.hosts))


def look(engine: Engine, watch_s: float, asked: Asked = NOTHING_MORE, patience_s: float | None = None) -> Snapshot:
    """Run the engine until every probe has answered once (or ``patience_s`` is over), and ``watch_s`` at least."""
    seen = engine.snapshot
    limit_s = patience_s if patience_s is not None else patience(load_now(), os.cpu_count() or 1)
    limit_s = max(limit_s, REACHED_S) if asked.hosts else limit_s

    def enough(snapshot: Snapshot) -> None:
        nonlocal seen
        seen = snapshot
        more_s = TRACED_S + 1.0 if traced(snapshot) else SETTLING_S if settles(snapshot) else 0.0
        late = snapshot.t >= watch_s + max(limit_s, more_s)
        if isinstance(engine.source, LiveSource) and awaits_facts(snapshot) and LOG not in missing(snapshot):
            engine.source.read_facts()  # 14 ms that a look at a ready server does without
        if snapshot.t >= watch_s and (
            late or not (missing(snapshot, asked) or traced(snapshot) or settles(snapshot) or awaits_facts(snapshot))
        ):
            engine.source.stop()

    engine.subscribe(enough)
    engine.run_here()
    engine.stop()
    last = engine.store.step(Event(seen.t, "tick"))  # the verdict, with what came after it was last drawn
    if watch_s < HYSTERESIS_S:
        # One look has no history, so the verdict is drawn without the delay that keeps a screen from flapping.
        last = replace(last, verdict=_without_history(engine, last))
    if asked.hosts:
        unseen = missing(last, asked)
        return replace(last, verdict=unfinished(last, unseen)) if unseen and not _any_heard(last) else last
    unseen = missing(last) or _unread(last)
    return replace(last, verdict=unfinished(last, unseen) if unseen else _with_a_way_on(last.verdict))


def _with_a_way_on(verdict: Verdict) -> Verdict:
    """One look cannot tell slow from hung: what would."""
    if verdict.state != "unknown" or verdict.rule != "first-look" or verdict.next:
        return verdict
    return replace(verdict, next=(LOOK_LONGER,))


def _unread(snapshot: Snapshot) -> tuple[str, ...]:
    """What a verdict cannot do without, where its probe has failed."""
    failed = _failed(snapshot)
    if snapshot.server is None:
        return ("the list of processes",) if not snapshot.looked_for and "server" in failed else ()
    return ("its processes",) if not snapshot.procs.processes and "procs" in failed else ()


def _failed(snapshot: Snapshot) -> dict[str, ProbeStatus]:
    """The probes that have answered with an error, or could not be started: one look waits for them no longer."""
    return {status.name: status for status in snapshot.probes if status.error}


def _without_history(engine: Engine, last: Snapshot) -> Verdict:
    store = engine.store
    if isinstance(store, Store):
        return diagnose(replace(last, verdict=Snapshot().verdict))
    return store.verdict_without_history()


LOOK_LONGER = NextStep("Look for longer", "sgmon status --seconds 10")
PATIENCE_S = 2.0
PATIENCE_MOST_S = 20.0
#: the first answer of a ready server takes a second or two
SETTLING_S = SETTLED_S + 3.0
#: the same for other machines: a jump host, and Python's start there
REACHED_S = 15.0
HYSTERESIS_S = 5.0
#: a look shorter than this ends before the first suspicion: no stacks are taken in it
EVIDENCE_S = 15.0
#: in ``missing``
LOG = "its log"
#: what one look is sure of, whatever else it has not seen
_SURE = frozenset({"crashed", "stopped", "stalled", "ended", "will-fail"})


def patience(load: float, cpus: int) -> float:
    """Seconds that a look waits for its probes: ``PATIENCE_S``, and more where each CPU has several tasks to run."""
    return min(PATIENCE_MOST_S, PATIENCE_S * max(1.0, load / cpus))


def load_now(path: str = "/proc/loadavg") -> float:
    """The tasks that want a CPU: the average of the last minute, or those of this moment where they are more."""
    try:
        words = Path(path).read_text("ascii").split()
        return max(float(words[0]), float(words[3].partition("/")[0]))
    except (OSError, ValueError, IndexError):
        return os.getloadavg()[0]


def awaits_facts(snapshot: Snapshot) -> bool:
    """The facts of a start that goes on are not read yet. A look without them lacks forecasts alone, so that it is
    finished all the same."""
    if snapshot.nodes:
        return any(awaits_facts(view.snapshot) for view in snapshot.nodes if view.heard)
    server = snapshot.server
    if server is None or not server.args_known or server.simulated_gpus or snapshot.log.ready_line is not None:
        return False
    return snapshot.preflight is None and "preflight" not in _failed(snapshot)


def settles(snapshot: Snapshot) -> bool:
    """/health says 200 and no line of the log can say more: it is ready when that has held for ``SETTLED_S``."""
    port, log = snapshot.port, snapshot.log
    open_yet = snapshot.verdict.state != "ready" and snapshot.verdict.state not in _SURE
    return port is not None and port.status == 200 and not log.milestones and open_yet


def traced(snapshot: Snapshot) -> bool:
    """A process is held by a tracer: whether it is kept there shows after ``TRACED_S`` seconds."""
    held = any(p.halted == "traced" for _, part in snapshot.parts for p in part.procs.processes)
    return held and snapshot.verdict.state != "stopped"


def unfinished(snapshot: Snapshot, unseen: Sequence[str]) -> Verdict:
    """The verdict of a look that has not seen everything: unknown, unless what it saw is certain."""
    if snapshot.verdict.state in _SURE:
        return snapshot.verdict
    words = ", ".join(unseen)
    errors = [status.error for name, status in _failed(snapshot).items() if name in ("server", "procs")]
    why = f"no answer in {duration(snapshot.t)} from: {words}"
    if errors:
        why = f"{errors[0]}, so that nothing is known of: {words}"
    return Verdict(
        "unknown",
        f"the look was not finished: {why}",
        phase=snapshot.verdict.phase,
        confidence=0.9,
        rule="look-unfinished",
        evidence=(Evidence("proc", f"not seen: {words}"), *snapshot.verdict.evidence[:3]),
        missing=snapshot.verdict.missing,
        next=(LOOK_LONGER,),
    )


def gpus_seen(snapshot: Snapshot) -> bool:
    """Whether NVML has answered, or why it cannot: who holds GPU memory matters before there is a server, too."""
    return bool(snapshot.gpu.source or snapshot.gpu.unavailable)


def missing(snapshot: Snapshot, asked: Asked = NOTHING_MORE) -> tuple[str, ...]:
    """What one look has not seen yet and still may, in words. Without ``asked``: what a verdict cannot do without."""
    if asked.hosts:
        return _missing_there(snapshot, asked)
    failed = _failed(snapshot)
    parts = {
        "watched folders": asked.folders and snapshot.watch_dirs is None and "watchdir" not in failed,
        "GPUs": asked.gpus and not gpus_seen(snapshot) and "gpu" not in failed,
        "the end of the log": asked.streams and snapshot.log.change != "ended" and "log" not in failed,
    }
    server = snapshot.server
    if server is None:
        parts["the list of processes"] = not snapshot.looked_for and "server" not in failed
    else:
        reads_log = server.log_kind in ("file", "deleted") and not asked.streams
        parts["its processes"] = not snapshot.procs.processes and "procs" not in failed
        parts["its port"] = snapshot.port is None and "port" not in failed and not server.args.headless
        log_seen = snapshot.log.size is not None or snapshot.probe("log") is not None
        parts[LOG] = reads_log and not log_seen
    return tuple(words for words, lacks in parts.items() if lacks)


def _missing_there(snapshot: Snapshot, asked: Asked) -> tuple[str, ...]:
    """The same of other machines; one that cannot be reached is not waited for."""
    if len(snapshot.nodes) < asked.hosts:
        return ("the other machines",)
    words: list[str] = []
    for view in snapshot.nodes:
        state = view.reading.state if view.reading is not None else "connecting"
        if state == "live":
            there = missing(view.snapshot, asked._replace(hosts=0))
            words += [f"{view.name}: {what}" for what in there]
        elif state == "connecting" and not (view.reading is not None and view.reading.why):
            words.append(view.name)
    return tuple(words)


def _any_heard(snapshot: Snapshot) -> bool:
    return any(view.server is not None for view in snapshot.nodes)
