"""What status, wait, record and the dashboard share: the arguments that choose a server, and Settings from them."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from sgmon.commands import USAGE
from sgmon.commands.hosts import hosts_of
from sgmon.commands.log_input import split_command, take_stdin
from sgmon.remote.hosts import HostError
from sgmon.settings import Settings
from sgmon.units import seconds_of


class UsageError(Exception):
    """Wrong usage: one sentence, and what to try."""


def add_target_arguments(parser: argparse.ArgumentParser, *, stdin: bool = True) -> None:
    """Those of every command that looks at a server. stdin: its log may come through this command's own input."""
    group = parser.add_argument_group("which server (default: the newest on this machine)")
    group.add_argument("--pid", metavar="N", help="any process of the server")
    group.add_argument("--port", metavar="N", help="the server that was started with this HTTP port")
    other = "read this log instead of fd 1 and 2"
    group.add_argument("--log", metavar="FILE", default="", help=f"{other}; - reads stdin" if stdin else other)
    group.add_argument(
        "--log-command",
        metavar="CMD",
        default="",
        help="read what this prints, e.g. 'kubectl logs -f POD' (no shell)",
    )
    group.add_argument("--proc-root", metavar="DIR", default="/proc", help="another /proc (a container's)")


def add_watch_arguments(parser: argparse.ArgumentParser, *, takes_stacks: bool = True) -> None:
    """Those of a command that watches for a while. takes_stacks: at a suspicion it takes them by itself."""
    group = parser.add_argument_group("how it is watched")
    group.add_argument("--interval", metavar="S", default="1", help="seconds between readings of /proc (default 1)")
    if takes_stacks:
        group.add_argument(
            "--no-auto-evidence", action="store_true", help="take no stacks by itself at the first suspicion"
        )
    add_watch_dir(group)
    add_no_gpu(group)
    group.add_argument("--no-http", action="store_true", help="look at the port in /proc only")


def add_no_gpu(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--no-gpu", action="store_true", help="do not load NVML")


def add_screen_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of every command that opens the dashboard."""
    group = parser.add_argument_group("screen")
    group.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")
    group.add_argument("--ascii", action="store_true", help="no glyphs beyond ASCII")
    group.add_argument("--theme", metavar="T", default="", help="dark, light, or a Textual theme, e.g. nord")


def add_watch_dir(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--watch-dir",
        metavar="DIR",
        action="append",
        default=[],
        help="a folder that the run writes into, e.g. /dev/shm/NAME: its growth counts as activity (repeatable)",
    )


def watch_dirs(args: argparse.Namespace) -> tuple[str, ...]:
    """The folders of --watch-dir as absolute paths; they need not exist yet."""
    return tuple(dict.fromkeys(str(Path(path).absolute()) for path in args.watch_dir))


def settings_from(args: argparse.Namespace) -> Settings:
    """Settings from parsed arguments; an option that the command does not have is as if it were not given. Raises
    ``UsageError`` with words."""
    given = vars(args)
    root = Path(args.proc_root)
    try:
        hosts, via = hosts_of(args) if "host" in args else ((), "")
    except HostError as err:
        raise UsageError(str(err)) from None
    if not hosts:
        _check_root(root)
    log, log_fd, log_command = _log(args, here=not hosts)
    return Settings(
        pid=number("--pid", args.pid, 1, 2**22),
        port=number("--port", args.port, 1, 65535),
        log=log,
        log_fd=log_fd,
        log_command=log_command,
        proc_root=str(root),
        interval_s=_seconds("--interval", given.get("interval", "1"), 0.2, 60.0),
        auto_evidence=not given.get("no_auto_evidence", False),
        watch_dirs=watch_dirs(args) if "watch_dir" in given else (),
        gpu=not given.get("no_gpu", False),
        probe_http=not given.get("no_http", False),
        hosts=hosts,
        via=via,
        remote_python=args.remote_python if hosts else "",
    )


def _check_root(root: Path) -> None:
    if not (root / "stat").exists() and not any(root.glob("[0-9]*")):
        if sys.platform != "linux":
            raise UsageError(
                f"no {root} here ({sys.platform}): sgmon reads Linux's /proc. Run it on the server's host, "
                "or read a log with: sgmon log FILE"
            )
        raise UsageError(f"{root} is no /proc: it has no processes. Try without --proc-root")


def say_usage(error: UsageError) -> int:
    print(f"sgmon: {error}", file=sys.stderr)
    return USAGE


def seconds(name: str, text: str) -> float:
    """A duration such as 90, 90s, 30m, 2h in seconds."""
    value = seconds_of(text)
    if value is None:
        raise UsageError(f"{name} {text!r} is no duration: try 90, 90s, 30m or 2h")
    if not 0 <= value < 1e8:
        raise UsageError(f"{name} {text!r} is out of range: try 90, 90s, 30m or 2h")
    return value


def _log(args: argparse.Namespace, *, here: bool) -> tuple[str, int | None, tuple[str, ...]]:
    """(file, descriptor, command): at most one of them, as ``Settings`` has them. here: of this machine."""
    if args.log_command and args.log:
        raise UsageError("--log and --log-command name two logs: give one of them")
    try:
        if args.log_command:
            return "", None, split_command(args.log_command)
        if args.log == "-":
            return "-", take_stdin(), ()
    except ValueError as err:
        raise UsageError(str(err)) from None
    if args.log and not here:
        return args.log, None, ()
    if args.log:
        _check_log(args.log)
    return str(Path(args.log).absolute()) if args.log else "", None, ()


def _check_log(path: str) -> None:
    if not os.path.exists(path):
        raise UsageError(f"no log {path}: check the path, or leave --log away to use the server's own fd 1 and 2")
    if os.path.isdir(path):
        raise UsageError(f"{path} is a directory: --log wants the log file itself")
    if not os.access(path, os.R_OK):
        raise UsageError(f"cannot read {path} (permission denied): try as the server's user, or with sudo")
    if os.path.isfile(path):
        with open(path, "rb") as file:
            head = file.read(8192)
        text = head.replace(b"\0", b"")
        if head[:2] == b"\x1f\x8b" or (head and len(text) < len(head) * 0.7 and b"\n" not in head[:4096]):
            raise UsageError(f"{path} is binary, not a text log: to read a finished log, also .gz, use: sgmon log")


def number(name: str, text: str | None, low: int, high: int) -> int | None:
    """A whole number in this range; None without one. Raises ``UsageError``."""
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError:
        raise UsageError(f"{name} {text!r} is no number: try {name} {30000 if name == '--port' else 4711}") from None
    if not low <= value <= high:
        raise UsageError(f"{name} {value} is out of range ({low} to {high})")
    return value


def _seconds(name: str, text: str, low: float, high: float) -> float:
    value = seconds_of(text)
    if value is None:
        raise UsageError(f"{name} {text!r} is no duration: try {low:g} to {high:g} seconds")
    if not low <= value <= high:
        raise UsageError(f"{name} {text} is out of range ({low:g} to {high:g} seconds)")
    return value
