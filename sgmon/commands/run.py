"""``sgmon run -- CMD``: start a server in its own session, its output in a log file, and watch it from second 0."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from sgmon.commands.watching import UsageError

HELP = "start a server and watch it from second 0"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log", metavar="FILE", default="", help="where its output goes (default: named for you)")
    parser.add_argument(
        "--wait", action="store_true", help="no screen: wait as `sgmon wait` does, with its exit codes"
    )
    parser.add_argument("--timeout", metavar="T", default="30m", help="with --wait: give up after this long")
    parser.add_argument("--stall", metavar="T", default="30s", help="with --wait: how long a stall must hold")
    parser.add_argument("--json", action="store_true", help="with --wait: one JSON object at the end")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD", help="the server's command line")


@dataclass(frozen=True, slots=True)
class Started:
    """A server that sgmon started. It is in its own session: it goes on when sgmon ends."""

    child: subprocess.Popen[bytes]
    log: Path


def start(command: list[str], log: str) -> Started:
    """Start ``command`` with stdin from /dev/null and stdout and stderr appended to ``log``."""
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        raise UsageError("nothing to run: try sgmon run -- python -m sglang.launch_server --model-path MODEL")
    if shutil.which(command[0]) is None:
        raise UsageError(f"no program {command[0]!r}: check the path, or activate the environment that has SGLang")
    path = Path(log) if log else Path(f"sglang-{time.strftime('%Y%m%d-%H%M%S')}.log")
    path = path.absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as err:
        raise UsageError(f"cannot write the log {path}: {err.strerror}. Try --log FILE in another folder") from err
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    except OSError as err:
        raise UsageError(f"cannot start {command[0]}: {err.strerror}") from err
    finally:
        os.close(output)
    return Started(child, path)


def run(args: argparse.Namespace) -> int:
    """Without a screen (``--wait``). The screen is ``tui_app``'s."""
    import sys

    from sgmon.commands.live import live_engine
    from sgmon.commands.wait import Waiting, wait_for
    from sgmon.commands.watching import say_usage, seconds
    from sgmon.settings import Settings

    try:
        waiting = Waiting(seconds("--timeout", args.timeout), seconds("--stall", args.stall))
        started = start(args.command, args.log)
    except UsageError as err:
        return say_usage(err)
    print(f"started pid {started.child.pid}, log {started.log}", file=sys.stderr)
    settings = Settings(pid=started.child.pid, log=str(started.log))
    code = wait_for(live_engine(settings), waiting, as_json=args.json)
    ended = started.child.poll()
    if ended is not None:
        print(f"the server has ended with code {ended}", file=sys.stderr)
        return ended if ended >= 0 else 128 - ended
    print(f"the server goes on: pid {started.child.pid}, log {started.log}", file=sys.stderr)
    return code
