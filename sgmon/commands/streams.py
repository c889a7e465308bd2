"""What a command stands on: standard streams that are there, writable, and for any text; a working folder."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import termios

from sgmon.commands import FAILED, USAGE

#: of writing to a file that is open
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def prepare() -> None:
    """Open those that are closed (``>&-``): the next file that is opened would take their number. What the encoding
    of the output has no character for becomes "?": a container without a locale, ``PYTHONIOENCODING``."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    for name, fd, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, mode, encoding="utf-8", errors="replace", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def code_after(err: OSError) -> int | None:
    """The exit code after an error of the standard streams or the working folder, which is said where anybody can
    read it; None: it is another error.

    What is left to be written goes nowhere, or Python would fail once more at its end."""
    if isinstance(err, BrokenPipeError):
        _to_nowhere(1, 2)
        return 128 + signal.SIGPIPE  # as a shell sees a program that the signal has ended
    if err.errno == errno.EIO and _is_terminal_closed():
        return 128 + signal.SIGHUP
    if err.filename is not None:
        return None
    if err.errno == errno.ENOENT and not _has_working_folder():
        print("sgmon: the working folder is gone: cd to another one", file=sys.stderr)
        return USAGE
    if err.errno not in _NO_ROOM:
        return None
    _to_nowhere(1)
    print(f"sgmon: the output cannot be written: {err.strerror}. Make room, or write elsewhere", file=sys.stderr)
    return FAILED


def _has_working_folder() -> bool:
    try:
        return bool(os.getcwd())
    except OSError:
        return False


def _is_terminal_closed() -> bool:
    closed = []
    for fd in (1, 2):
        try:
            termios.tcgetattr(fd)
        except termios.error as err:
            if err.args[0] == errno.EIO:  # a file would be ENOTTY
                closed.append(fd)
    _to_nowhere(*closed)
    return bool(closed)


def _to_nowhere(*fds: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for fd in fds:
        os.dup2(nowhere, fd)
    os.close(nowhere)
