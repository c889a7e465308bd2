"""``sgmon serve``: the dashboard in a browser on this machine, read-only. Needs textual-serve (``sgmon[serve]``).

Each visitor gets a process of their own (``tui_app.visitor``), which ends with the connection.
"""

from __future__ import annotations

import argparse
import importlib.util
import ipaddress
import shlex
import sys
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sgmon.commands import FAILED, NO_SERVER
from sgmon.commands.watching import (
    UsageError,
    add_target_arguments,
    add_watch_arguments,
    number,
    say_usage,
    settings_from,
)
from sgmon.paths import own_program
from sgmon.settings import Settings

EPILOG = """\
Only this machine can open the page, with the address that is printed. Its token is new each time.
From another machine: ssh -L 8765:127.0.0.1:8765 HOST, then open the same address there.
The page is read-only: no stacks, no files, no choice of another server.
"""
NO_EXTRA = "sgmon serve needs textual-serve, which is not installed: pip install 'sgmon[serve]'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    group = parser.add_argument_group("web page")
    group.add_argument("--listen", metavar="ADDRESS", default="127.0.0.1", help="a loopback address (127.0.0.1)")
    group.add_argument("--listen-port", metavar="N", default="8765", help="port of the page (8765)")
    group.add_argument("--theme", metavar="T", default="", help="dark, light, or a Textual theme, e.g. nord")
    group.add_argument("--ascii", action="store_true", help="no glyphs beyond ASCII")
    add_target_arguments(parser, stdin=False)
    add_watch_arguments(parser, takes_stacks=False)


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    try:
        settings = replace(settings_from(args), theme=args.theme, ascii=args.ascii, auto_evidence=False)
        host, port = loopback(args.listen), number("--listen-port", args.listen_port, 1, 65535)
        if settings.log == "-":
            raise UsageError("--log - reads stdin, which visitors of a page cannot share: give a file")
        if importlib.util.find_spec("textual_serve") is None:
            raise UsageError(NO_EXTRA)
    except UsageError as err:
        return say_usage(err)
    if settings.pid is not None:
        from sgmon.discovery import TargetError, find

        try:
            find(Path(settings.proc_root), settings)
        except TargetError as err:
            print(f"sgmon: {err}", file=sys.stderr)
            return NO_SERVER
    from tui_app.web_server import WebServer

    try:
        WebServer(visitor_command(settings), host, port or 0).serve()
    except OSError as err:
        print(
            f"sgmon: cannot listen on {host} port {port}: {err.strerror}; try another --listen-port", file=sys.stderr
        )
        return FAILED
    return 0


def loopback(host: str) -> str:
    """The address, if only this machine can reach it. Raises ``UsageError``."""
    try:
        if host == "localhost" or ipaddress.ip_address(host).is_loopback:
            return host
    except ValueError:
        pass
    raise UsageError(
        f"--listen {host} is no loopback address, and sgmon serve listens on no other: try 127.0.0.1; "
        "from another machine: ssh -L 8765:127.0.0.1:8765 HOST"
    )


def visitor_command(settings: Settings) -> str:
    """For a shell: the process of one visitor. "exec": it is the server's own child and ends with it."""
    program = own_program("from tui_app.visitor import main; sys.exit(main(sys.argv[1:]))")
    return "exec " + shlex.join([*program, msgspec.json.encode(settings).decode()])
