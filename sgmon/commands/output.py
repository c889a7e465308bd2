"""What the commands print: JSON objects on stdout, and what is said when there is no server."""

from __future__ import annotations

import sys

from sgmon.commands import NO_SERVER
from sgmon.discovery import TargetError
from sgmon.export.json_schema import SCHEMA, FailureReport, FailureText
from sgmon.json_text import as_json
from sgmon.recording.codec import CUT


def print_json(body: object) -> None:
    """One object, one line, on stdout. "##[" is escaped: GitHub takes it for a command in the log of a job."""
    sys.stdout.buffer.write(as_json(body).replace(b"##[", b"##\\u005b") + b"\n")
    sys.stdout.buffer.flush()


def say_cut(path: str) -> None:
    """Say that a recording was read as far as it goes."""
    print(f"sgmon: {path} {CUT}", file=sys.stderr)


def say_no_server(err: TargetError, *, as_json: bool = False) -> int:
    """Say that there is no such server, on stderr, with --json as an object on stdout; returns the exit code."""
    if as_json:
        print_json(FailureReport(SCHEMA, FailureText(err.words, err.remedy)))
    else:
        print(f"sgmon: {err}", file=sys.stderr)
    return NO_SERVER
