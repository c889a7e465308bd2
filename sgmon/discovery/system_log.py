"""Programs that send what they read to the system log, where it is found by its tag."""

from __future__ import annotations

import shlex

from sgmon.discovery.containers import option
from sgmon.discovery.logtarget import TAIL_LINES
from sgmon.discovery.output_readers import Reader
from sgmon.proc import stat

_PROGRAMS = ("logger",)


def remedy(root: str, reader: Reader) -> str:
    """How to get at what such a program (util-linux logger(1)) has sent; "" for another program."""
    if reader.name not in _PROGRAMS:
        return ""
    try:
        tag = option(stat.cmdline(root, reader.pid), "-t", "--tag")
    except OSError:
        tag = ""
    command = shlex.join(("journalctl", "-f", "-n", TAIL_LINES, *(("-t", tag) if tag else ())))
    return f"--log-command '{command}', or the file of the system log with --log"
