"""``sgmon wait``: block until the server is ready, has crashed, has ended, or has stalled."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sgmon.analyse.diagnosis.crash_phase import OPEN
from sgmon.commands import EXIT_CODES, FAILED, NO_SERVER, NOT_READY, READY, STALLED, exit_code, exit_code_of
from sgmon.commands.after import run_hook, write_report, write_step_summary
from sgmon.commands.bundling import zip_path
from sgmon.commands.hosts import add_host_arguments
from sgmon.commands.live import live_engine
from sgmon.commands.narrator import Narrator
from sgmon.commands.output import print_json, say_no_server
from sgmon.commands.speaker import Speaker
from sgmon.commands.watching import (
    UsageError,
    add_target_arguments,
    add_watch_arguments,
    say_usage,
    seconds,
    settings_from,
)
from sgmon.discovery import TargetError, find
from sgmon.export.json import status_report
from sgmon.export.text import as_text
from sgmon.model import Snapshot
from sgmon.signals import told_of
from sgmon.units import duration
from sgmon.watch.engine import Engine

_STANDING = frozenset({"stalled", "stopped"})
_OVER = frozenset({"crashed", "ended"})
DOOMED = "will-fail"
#: a server that is replaced lets go of its port and memory within this time
DOOMED_S = 5.0
#: a dead process is seen before the lines that tell why it died are read
CAUSE_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"exit codes:\n{EXIT_CODES}"
    add_target_arguments(parser)
    add_watch_arguments(parser)
    add_host_arguments(parser)
    add_waiting_arguments(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress lines")


def add_waiting_arguments(parser: argparse._ActionsContainer) -> None:
    """Those that `sgmon run --wait` has too."""
    parser.add_argument("--timeout", metavar="T", default="30m", help="give up after this long (default 30m)")
    parser.add_argument(
        "--stall",
        metavar="T",
        default="30s",
        help="how long a stalled or stopped verdict must hold (default 30s)",
    )
    parser.add_argument("--fail-fast", action="store_true", help="end (3) as soon as it is sure that it will fail")
    parser.add_argument(
        "--on-stall",
        metavar="CMD",
        default="",
        help="run this once by the shell when it stalls, with SGMON_STATE, SGMON_HEADLINE, SGMON_PID ... set",
    )
    parser.add_argument("--report", metavar="FILE", default="", help="write the evidence bundle when it is not ready")
    parser.add_argument("--json", action="store_true", help="one JSON object at the end (docs/status.schema.json)")


class AtEnd(Struct, frozen=True):
    """What to do when the wait is over."""

    as_json: bool = False
    on_stall: str = ""
    report: Path | None = None


class Waiting:
    """Looks at each snapshot and decides whether the wait is over. ``code`` is None until then."""

    def __init__(self, timeout_s: float, stall_s: float, *, fail_fast: bool = False) -> None:
        self.fail_fast = fail_fast
        self.timeout_s = timeout_s
        self.stall_s = stall_s
        self.code: int | None = None
        self.is_late = False  # the time was over before anything else
        self._standing_since: float | None = None
        self._doomed_since: float | None = None
        self._over = ""  # the state, since then, in which the server has come to its end
        self._over_since = 0.0

    def look(self, snapshot: Snapshot) -> bool:
        state = snapshot.verdict.state
        if state == "ready":
            self.code = exit_code(state)
        elif state in _OVER:
            if self._over != state:
                self._over, self._over_since = state, snapshot.t
            if snapshot.t - self._over_since >= CAUSE_S and snapshot.verdict.rule != OPEN:
                self.code = exit_code_of(snapshot)
        elif state in _STANDING:
            if self._standing_since is None:
                self._standing_since = snapshot.t
            if snapshot.t - self._standing_since >= self.stall_s:
                self.code = exit_code(state)
        else:
            self._standing_since, self._over = None, ""
        self._doomed_since = (self._doomed_since or snapshot.t) if state == DOOMED else None
        if self.fail_fast and self._doomed_since is not None and snapshot.t - self._doomed_since >= DOOMED_S:
            self.code = STALLED
        if self.code is None and snapshot.t >= self.timeout_s:
            self.is_late = True
            self.code = NO_SERVER if snapshot.server is None else NOT_READY
        return self.code is not None


def run(args: argparse.Namespace) -> int:
    try:
        settings = settings_from(args)
        waiting = waiting_of(args)
        at_end = at_end_of(args)
        if settings.pid is not None:
            find(Path(settings.proc_root), settings)
    except UsageError as err:
        return say_usage(err)
    except TargetError as err:
        return say_no_server(err, as_json=args.json)
    return wait_for(live_engine(settings), waiting, at_end, quiet=args.quiet)


def waiting_of(args: argparse.Namespace) -> Waiting:
    """What to wait for, by the arguments. Raises ``UsageError``."""
    return Waiting(seconds("--timeout", args.timeout), seconds("--stall", args.stall), fail_fast=args.fail_fast)


def at_end_of(args: argparse.Namespace) -> AtEnd:
    """What to do at the end, by the arguments. Raises ``UsageError``."""
    return AtEnd(args.json, args.on_stall, zip_path("--report", args.report))


def wait_for(engine: Engine, waiting: Waiting, at_end: AtEnd, *, quiet: bool = False) -> int:
    """Run ``engine`` here until ``waiting`` is over; progress goes to stderr, the end to stdout."""
    speaker = Speaker()
    last = engine.snapshot
    narrator = Narrator(os.environ)

    def look(snapshot: Snapshot) -> None:
        nonlocal last
        if waiting.code is not None:
            return
        last = snapshot
        over = waiting.look(snapshot)
        for line in () if quiet else narrator.lines(snapshot):
            speaker.say(line)
        if over:
            engine.source.stop()

    asked_to_end = 0

    def end(number: int) -> None:
        nonlocal asked_to_end
        asked_to_end = asked_to_end or number
        engine.source.stop()

    with told_of((signal.SIGTERM, signal.SIGINT), end):
        engine.subscribe(look)
        engine.run_here()
        for line in narrator.end():
            speaker.say(line)
        if waiting.is_late and not quiet:
            speaker.say(f"not ready in {duration(waiting.timeout_s)}: gave up (--timeout)")
        engine.stop()
    # what follows may hang on a terminal: it can be ended
    code = waiting.code
    if code is None:  # as a shell sees a process that a signal ended
        code = 128 + asked_to_end if asked_to_end else FAILED
    _finish(engine, replace(last, saved=engine.snapshot.saved), code, at_end, speaker, narrator)
    return code


def _finish(engine: Engine, last: Snapshot, code: int, at_end: AtEnd, speaker: Speaker, narrator: Narrator) -> None:
    if code != READY and at_end.report is not None:
        speaker.say(write_report(engine, at_end.report))
    if at_end.on_stall and last.verdict.state in _STANDING and code == exit_code(last.verdict.state):
        speaker.say(run_hook(at_end.on_stall, last, str(at_end.report or "")))
    for line in write_step_summary(last, code):
        speaker.say(line)
    for path in last.saved:
        speaker.say(f"recording saved: {path} (sgmon replay shows it)")
    speaker.close()
    if at_end.as_json:
        print_json(status_report(last))
    else:
        print("\n".join(map(narrator.shown, as_text(last, everything=False))))
