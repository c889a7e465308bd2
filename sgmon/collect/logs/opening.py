"""Opens a log without waiting for anybody: its kind, who it is, whether it is text."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path


def open_log(path: str) -> tuple[int | None, str, str]:
    """(descriptor, why not, kind). Only regular files are opened; never waits for a writer."""
    try:
        status = os.stat(path)
        kind = kind_of(status.st_mode, path)
        if kind != "file":
            return None, "is a directory" if kind == "directory" else f"is a {kind}", kind
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return None, "there is no such file (yet)", "missing"
    except OSError as err:
        return None, f"cannot be read: {err.strerror}", "unreadable"
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # replaced in between
        os.close(fd)
        return None, "is no file", "unreadable"
    return fd, "", "file"


def is_pipe(path: Path) -> bool:
    """Whether stderr is read by somebody: then the log is that one's, and not a file that stdout may be."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


def kind_of(mode: int, path: str) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISFIFO(mode):
        return "pipe"
    if stat.S_ISSOCK(mode):
        return "socket"
    return "null" if path == "/dev/null" else "pty" if path.startswith(("/dev/pts/", "/dev/tty")) else "device"


def identity_of(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


def new_decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")(errors="replace")


_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\x1b\x08\x07\x0c"))


def is_binary(data: bytes) -> bool:
    """Many NULs, or mostly bytes that are no text. NULs at the start alone are a truncated log's hole."""
    data = data.lstrip(b"\0")
    if len(data) < 32:
        return False
    odd = len(data) - len(data.translate(None, _CONTROLS))
    replaced = data.decode("utf-8", "replace").count("\ufffd")
    return odd > len(data) * 0.05 or replaced > len(data) * 0.2
