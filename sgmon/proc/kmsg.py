"""The kernel's log: /dev/kmsg, read from its end, without waiting (Documentation/ABI/testing/dev-kmsg)."""

from __future__ import annotations

import os

from sgmon.model.kernel import KernelLine
from sgmon.patterns import regex
from sgmon.text import clean

_OOM = regex(r"(?:Out of memory|Memory cgroup out of memory): Kill(?:ed)? process (?P<pid>\d+)")
_FAULT = regex(r"\[(?P<pid>\d+)\]:? (?:segfault at|trap |general protection)")
_MOST = 1000  # records a look


def open_at_end() -> int:
    """A descriptor that shows the records to come. Raises OSError where this user may not read it."""
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.lseek(fd, 0, os.SEEK_END)
    except OSError:
        os.close(fd)
        raise
    return fd


def new_lines(fd: int) -> tuple[KernelLine, ...]:
    """The records about ends of processes since the last call. Raises OSError."""
    found = []
    for _ in range(_MOST):
        try:
            record = os.read(fd, 8192)
        except BlockingIOError:
            break
        except BrokenPipeError:
            continue  # records were overwritten: the next read goes on behind them
        line = parse(record.decode("utf-8", "replace"))
        if line is not None:
            found.append(line)
    return tuple(found)


def parse(record: str) -> KernelLine | None:
    """A record ("6,1234,98765,-;text") that tells of the end of a process; None for any other."""
    text = record.partition(";")[2].partition("\n")[0]
    for what, pattern in (("oom", _OOM), ("fault", _FAULT)):
        match = pattern.search(text)
        if match is not None:
            return KernelLine(what, int(match["pid"]), clean(text, 200))
    return None
