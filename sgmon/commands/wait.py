"""``sgmon wait``: block until the server is ready, has crashed, or stands still."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

import msgspec

from sgmon import report
from sgmon.commands import NO_SERVER, NOT_READY, exit_code
from sgmon.commands.live import live_engine
from sgmon.commands.status import say_no_server
from sgmon.commands.watching import UsageError, add_target_arguments, say_usage, seconds, settings_from
from sgmon.engine import Engine
from sgmon.model import Snapshot
from sgmon.target import TargetError, find

HELP = "block until ready, crashed or stalled (for scripts)"
LINE_S = 10.0
_STANDING = frozenset({"stalled", "stopped"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target_arguments(parser)
    parser.add_argument("--timeout", metavar="T", default="30m", help="give up after this long (default 30m)")
    parser.add_argument(
        "--stall",
        metavar="T",
        default="30s",
        help="how long a stalled or stopped verdict must hold (default 30s)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end (schema 1)")
    parser.add_argument("--quiet", action="store_true", help="no progress lines")


class Waiting:
    """Looks at each snapshot and decides whether the wait is over. ``code`` is None until then."""

    def __init__(self, timeout_s: float, stall_s: float) -> None:
        self.timeout_s = timeout_s
        self.stall_s = stall_s
        self.code: int | None = None
        self._standing_since: float | None = None

    def look(self, snapshot: Snapshot) -> bool:
        state = snapshot.verdict.state
        if state in ("ready", "crashed"):
            self.code = exit_code(state)
        elif state in _STANDING:
            if self._standing_since is None:
                self._standing_since = snapshot.t
            if snapshot.t - self._standing_since >= self.stall_s:
                self.code = exit_code(state)
        else:
            self._standing_since = None
        if self.code is None and snapshot.t >= self.timeout_s:
            self.code = NO_SERVER if snapshot.server is None else NOT_READY
        return self.code is not None


def run(args: argparse.Namespace) -> int:
    try:
        settings = settings_from(args)
        waiting = Waiting(seconds("--timeout", args.timeout), seconds("--stall", args.stall))
        if settings.pid is not None:
            find(Path(settings.proc_root), settings)
    except UsageError as err:
        return say_usage(err)
    except TargetError as err:
        return say_no_server(err)
    engine = live_engine(settings)
    return wait_for(engine, waiting, as_json=args.json, quiet=args.quiet)


def wait_for(engine: Engine, waiting: Waiting, *, as_json: bool = False, quiet: bool = False) -> int:
    """Run ``engine`` here until ``waiting`` is over; progress goes to stderr, the end to stdout."""
    last = engine.snapshot
    said_t = -LINE_S
    said_state = ""

    def look(snapshot: Snapshot) -> None:
        nonlocal last, said_t, said_state
        if waiting.code is not None:
            return
        last = snapshot
        over = waiting.look(snapshot)
        state = snapshot.verdict.state
        if not quiet and (snapshot.t - said_t >= LINE_S or (state != said_state and snapshot.t > 1.0)):
            said_t, said_state = snapshot.t, state
            print(report.progress_line(snapshot), file=sys.stderr, flush=True)
        if over:
            engine.source.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: engine.source.stop())
    engine.subscribe(look)
    engine.run_here()
    engine.stop()
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(report.as_json(last)) + b"\n")
    else:
        print("\n".join(report.as_text(last)))
    return 130 if waiting.code is None else waiting.code
