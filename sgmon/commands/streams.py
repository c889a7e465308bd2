"""The standard streams of a command: there, writable, and for any text."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import termios

from sgmon.commands import FAILED

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
    for name, fd in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, "w", encoding="utf-8", errors="replace", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def left_unwritten(err: OSError) -> int | None:
    """The exit code after an error of writing, which is said where anybody can read it; None: it is another error.

    What is left to be written goes nowhere, or Python would fail once more at its end."""
    if isinstance(err, BrokenPipeError):
        _to_nowhere(1, 2)
        return 128 + signal.SIGPIPE  # as a shell sees a program that the signal has ended
    if err.errno == errno.EIO and _is_terminal_closed():
        return 128 + signal.SIGHUP
    if err.errno not in _NO_ROOM or err.filename is not None:
        return None
    _to_nowhere(1)
    print(f"sgmon: the output cannot be written: {err.strerror}. Make room, or write elsewhere", file=sys.stderr)
    return FAILED


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
