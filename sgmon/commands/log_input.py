"""A log that is no file: our own input (``--log -``), or what a command prints (``--log-command``)."""

from __future__ import annotations

import os
import shlex
import shutil

_IN = 0


def take_stdin() -> int:
    """The log's descriptor. Descriptor 0 becomes the terminal, so that keys still come; /dev/null without one.
    ValueError: stdin is no log, in words."""
    if os.isatty(_IN):
        raise ValueError("--log - reads stdin, which is this terminal: try: kubectl logs -f POD | sgmon --log -")
    try:
        log = os.dup(_IN)
    except OSError:
        raise ValueError("--log - reads stdin, which is closed: try: kubectl logs -f POD | sgmon --log -") from None
    try:
        keys = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        keys = os.open(os.devnull, os.O_RDONLY)
    os.dup2(keys, _IN)
    os.close(keys)
    return log


def split_command(text: str) -> tuple[str, ...]:
    """The words of ``--log-command``, quoted as for a shell, which never sees them. ValueError: words for people."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as err:
        raise ValueError(f"--log-command {text!r}: {err}".lower()) from None
    if not words:
        raise ValueError("--log-command is empty: try --log-command 'kubectl logs -f POD'")
    if shutil.which(words[0]) is None:
        raise ValueError(f"--log-command: there is no program {words[0]!r} (it is run without a shell)")
    return words
