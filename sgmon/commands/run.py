"""``sgmon run -- CMD``: start a server in its own session, its output in a log file, and watch it from second 0.

The server is not sgmon's: quitting sgmon, a lost terminal or ``kill`` of sgmon leave it running. Watching it again
needs no attaching: ``sgmon``, from anywhere, finds it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from msgspec import Struct

from sgmon.collect.source import LiveSource
from sgmon.commands import CRASHED
from sgmon.commands.gpus import ask_gpu
from sgmon.commands.live import live_engine
from sgmon.commands.wait import add_waiting_arguments, at_end_of, wait_for, waiting_of
from sgmon.commands.watching import UsageError, add_screen_arguments, add_watch_dir, say_usage, watch_dirs
from sgmon.settings import Settings

#: a server that ends kills its children first, which takes some seconds
ENDING_S = 10.0
ATTACH = """\
The server runs in a session of its own, its output in the log. Quitting sgmon (q, a closed terminal, kill; ctrl+c
with --wait) leaves it running; `sgmon` watches it again, from any terminal of the same user. `kill PID` ends it,
sgmon never does. When the server has ended before sgmon, its exit code is sgmon's (128 + N for signal N); with
--wait, where it ended with 0 and was never ready, sgmon's is 4 or 5.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = ATTACH
    parser.add_argument("--log", metavar="FILE", default="", help="where its output goes (default: named for you)")
    parser.add_argument(
        "--wait", action="store_true", help="no screen: wait as `sgmon wait` does, with its exit codes"
    )
    add_waiting_arguments(parser.add_argument_group("with --wait"))
    add_watch_dir(parser)
    add_screen_arguments(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD", help="the server's command line")


class Started(Struct, frozen=True):
    """A server that sgmon started. It is in its own session: it goes on when sgmon ends."""

    child: subprocess.Popen[bytes]
    log: Path


def runnable(command: list[str]) -> list[str]:
    """The words after "--". Raises ``UsageError`` where they name no program."""
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        raise UsageError("nothing to run: give the server's own command line after sgmon run --")
    if shutil.which(command[0]) is None:
        raise UsageError(f"no program {command[0]!r}: check the path, or activate the environment that has it")
    return command


def start(command: list[str], log: str) -> Started:
    """Start ``command`` with stdin from /dev/null and stdout and stderr appended to ``log``."""
    command = runnable(command)
    path = Path(log) if log else Path(f"server-{time.strftime('%Y%m%d-%H%M%S')}.log")
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
    try:
        waiting, at_end = waiting_of(args), at_end_of(args)
        started = start(args.command, args.log)
    except UsageError as err:
        return say_usage(err)
    print(f"started pid {started.child.pid}, log {started.log}", file=sys.stderr)
    check_beside(args.command, started.child.pid)
    settings = Settings(pid=started.child.pid, is_started=True, log=str(started.log), watch_dirs=watch_dirs(args))
    source = LiveSource(settings)
    tell_the_end(started, source)
    code = wait_for(live_engine(settings, source=source), waiting, at_end)
    words, server_code = ending(started, code)
    print(words, file=sys.stderr)
    return server_code or code  # a server that ended with 0 before it was ready is no success


def check_beside(command: list[str], pid: int) -> threading.Thread:
    """Say on stderr what ``sgmon check`` says of the command, from a thread: the start does not wait for it. With
    a screen the watch looks for itself when it first sees the server."""

    def say() -> None:
        lines = checked(command, pid)
        if lines:
            print("\n".join(lines), file=sys.stderr, flush=True)

    thread = threading.Thread(target=say, daemon=True, name="check")
    thread.start()
    return thread


def checked(command: list[str], pid: int) -> list[str]:
    """What is not ok of the command that was started as ``pid``, in lines; [] where no server is seen behind it."""
    from sgmon.commands import check

    try:
        server = check.server_of(command)
    except UsageError:
        return []
    found = check.check(server, ask_gpu(Settings()))
    own = tuple(one for one in found if one.pid is None or not _is_of(one.pid, pid))
    return list(check.as_lines(server, own))


def _is_of(pid: int, leader: int) -> bool:
    """Whether a process is of the session that the server began: its own port is nobody else's."""
    try:
        return os.getsid(pid) == leader
    except OSError:
        return False


def tell_the_end(started: Started, source: LiveSource) -> None:
    """Report on the screen when the command ends before it has become a server; no probe sees that."""

    def wait() -> None:
        code = started.child.wait()
        if source.watched.server is None:
            how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
            source.tell("command", f"the command {how} before it became a server", f"tail -n 40 {started.log}")

    threading.Thread(target=wait, daemon=True, name="command").start()


def ending(started: Started, code: int) -> tuple[str, int]:
    """The last sentence, and the exit code: the server's own if it has ended."""
    try:
        ended: int | None = started.child.wait(timeout=ENDING_S if code == CRASHED else 0)
    except subprocess.TimeoutExpired:
        ended = None
    if ended is None:
        return f"the server goes on: pid {started.child.pid}, log {started.log}; look again with: sgmon", code
    how = f"by signal {-ended}" if ended < 0 else f"with code {ended}"
    return f"the server has ended {how}, log {started.log}", ended if ended >= 0 else 128 - ended
