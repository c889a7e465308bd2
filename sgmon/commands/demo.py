"""``sgmon demo``: the list of scenarios, and a simulated server on its own. The dashboard over it is the caller's."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from types import FrameType

from sgmon.commands.watching import add_screen_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", nargs="?", default="healthy", help="see --list (default: healthy)")
    parser.add_argument("--list", action="store_true", help="name the scenarios, one a line")
    parser.add_argument(
        "--server-only", action="store_true", help="no dashboard: one JSON line with pid, port and log"
    )
    parser.add_argument("--tp", type=int, metavar="N", help="number of ranks (default: the scenario's own)")
    parser.add_argument(
        "--version", default="", help="version of the server to play, e.g. 0.5.9 (default: the newest)"
    )
    parser.add_argument("--speed", type=float, default=1.0, metavar="F", help="4: four times as fast")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="HTTP port (default: a free one)")
    add_screen_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """``--list`` and ``--server-only``."""
    from sgmon import demo

    if args.list:
        width = max(len(name) for name in demo.SCENARIOS)
        for name, text in demo.SCENARIOS.items():
            print(f"{name:<{width}}  {text}")
        return 0
    for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):  # a shell ignores SIGINT for background jobs
        signal.signal(signum, _end)
    try:
        server = demo.start(args.scenario, tp=args.tp, version=args.version, speed=args.speed, port=args.port)
    except (ValueError, OSError) as error:  # no such play; no folder for temporary files
        print(f"sgmon demo: {error}", file=sys.stderr)
        return 2
    with server:
        facts = {
            "pid": server.pid,
            "port": server.port,
            "log": server.log,
            "scenario": server.scenario,
            "gpus": server.gpus,
        }
        print(json.dumps(facts), flush=True)
        try:
            server.wait()
        except KeyboardInterrupt:
            return 0
    return 0


def _end(_signum: int, _frame: FrameType | None) -> None:
    """Leaves the ``with`` above, which stops the server."""
    raise SystemExit(0)
