"""What ``logfile.find`` answers, and the words that its parts share."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from sgmon.model import Missing

GIVE_LOG = "give the file with --log"
#: lines that a runtime's own command prints of what was before: a start writes some thousands
TAIL_LINES = "100000"


class LogTarget(NamedTuple):
    """``path`` is what to read from here, ``command`` what prints the log where there is no such file; both empty
    when there is nothing to read. Kinds as in ``Server.log_kind``. relay: the program through which the output goes
    into the file, "tee (pid 7)"."""

    path: str = ""
    kind: str = "none"
    source: str = ""
    inner_path: str = ""
    missing: Missing | None = None
    command: tuple[str, ...] = ()
    relay: str = ""


def by_command(command: tuple[str, ...], source: str) -> LogTarget:
    """The log as a command prints it; missing when that program is not installed."""
    import shutil  # with its compressors 2 ms, for servers in containers alone

    if shutil.which(command[0]):
        return LogTarget("", "command", source, command=command)
    why = f"only {command[0]} can print it, which is not installed here"
    return unread("pipe", source, why, f"where it is: {by_hand(shlex.join(command))}")


def unread(kind: str, source: str, why: str, remedy: str) -> LogTarget:
    """Nothing to read: why, and what would."""
    return LogTarget("", kind, source, missing=Missing("log", why, remedy))


def by_hand(command: str) -> str:
    """What a person types to follow the log through a command. docker logs and podman logs print what the server
    wrote to stderr to theirs, which a plain "|" would lose."""
    return f"{command} 2>&1 | sgmon --log -"
