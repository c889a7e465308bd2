"""Bytes of a log by offset: a regular file that is read, or a spool for text that has no file.

A file is opened without waiting and only when it is a regular one: reading a pipe, a terminal or a socket
would take bytes away from whoever is meant to have them.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Protocol

from sgmon.proc import mounts
from sgmon.proc.guard import Patience

#: seconds that a read from a file system which another machine or process answers for may take: the screen reads, too
HUNG_S = 0.3


def _may_hang(device: int) -> bool:
    """Whether the file system with this device number is such a one; it is not touched."""
    name = f"{os.major(device)}:{os.minor(device)}"
    try:
        return any(row.device == name and row.remote for row in mounts.read("/proc"))
    except OSError:
        return False


class TextFile(Protocol):
    """What the index reads. ``size`` only grows; a shorter file is another ``TextFile``."""

    size: int

    def read(self, offset: int, count: int) -> bytes: ...


class RegularFile:
    """A regular file, kept open: it stays readable when its name is gone."""

    def __init__(self, path: str) -> None:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError(f"not a regular file: {path}")
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            self._fd = -1
            raise OSError(f"not a regular file: {path}")
        self.identity = f"{status.st_dev}:{status.st_ino}"
        self.size = status.st_size
        self._patience = Patience(HUNG_S) if _may_hang(status.st_dev) else None

    def read(self, offset: int, count: int) -> bytes:
        """Up to ``count`` bytes; fewer at the end, none where nothing can be read any more."""
        if self._patience is not None:
            return self._patience.run(lambda: os.pread(self._fd, count, offset), b"")
        try:
            return os.pread(self._fd, count, offset)
        except OSError:
            return b""

    @property
    def may_hang(self) -> bool:
        """Whether another machine or process answers for the file."""
        return self._patience is not None

    def size_now(self) -> int:
        """The size that the file has at this moment."""
        if self._patience is not None:
            return self._patience.run(lambda: os.fstat(self._fd).st_size, self.size)
        try:
            return os.fstat(self._fd).st_size
        except OSError:
            return self.size

    def __del__(self) -> None:
        # Closed when the last reader lets go: a search may still be in the middle of the old file.
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            with contextlib.suppress(OSError):  # a file system whose daemon has died refuses even that
                os.close(fd)


class Spool:
    """Text from readings, kept in a temporary file without a name; in memory where no folder can be written."""

    identity = ""

    def __init__(self) -> None:
        self.size = 0
        self.full = False  # the disk is: what came later is not kept
        try:
            import tempfile  # and with it random and hashlib

            self._file = tempfile.TemporaryFile(prefix="sgmon-log-")
            self._fd = self._file.fileno()
        except OSError:
            self._fd = os.memfd_create("sgmon-log", os.MFD_CLOEXEC)

    def append(self, text: str) -> None:
        self.append_bytes(text.encode("utf-8", "replace"))

    def append_bytes(self, data: bytes) -> None:
        written = 0
        while written < len(data) and not self.full:
            try:
                written += os.pwrite(self._fd, data[written:], self.size + written)
            except OSError:
                self.full = True
        self.size += written

    def read(self, offset: int, count: int) -> bytes:
        count = min(count, self.size - offset)
        return os.pread(self._fd, count, offset) if count > 0 else b""

    def __del__(self) -> None:
        if not hasattr(self, "_file") and hasattr(self, "_fd"):
            os.close(self._fd)
