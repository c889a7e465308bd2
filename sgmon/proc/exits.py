"""How a process ended, without being its parent.

``pidfd_open`` needs no permission. ``PIDFD_GET_INFO`` with ``PIDFD_INFO_EXIT`` (Linux >= 6.15,
include/uapi/linux/pidfd.h) gives the status of a process that another parent has reaped, also of another user.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
from typing import NamedTuple

_INFO_EXIT = 1 << 3
_INFO_SIZE = 64  # PIDFD_INFO_SIZE_VER0
_GET_INFO = (3 << 30) | (_INFO_SIZE << 16) | (0xFF << 8) | 11  # _IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info)
_EXIT_CODE_AT = 8 + 8 + 11 * 4  # mask, cgroupid, pid tgid ppid and 4 x (ruid/rgid ...) come first


class End(NamedTuple):
    """Either a code or a signal number; both None: the status is not known, and ``source`` says why."""

    code: int | None = None
    signal: int | None = None
    source: str = ""

    @property
    def words(self) -> str:
        """ "signal 9 (SIGKILL)", "exit code 3", "exit status unknown"."""
        if self.signal is not None:
            return f"signal {self.signal} ({signal_name(self.signal)})"
        return "exit status unknown" if self.code is None else f"exit code {self.code}"


def from_status(status: int, source: str) -> End:
    """``status`` as wait(2) gives it."""
    low = status & 0x7F
    return End(signal=low, source=source) if low else End(code=(status >> 8) & 0xFF, source=source)


def open_pidfd(pid: int) -> int | None:
    """A descriptor for the process that has ``pid`` now; None: gone, or the kernel is older than 5.3."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


def has_ended(pidfd: int) -> bool:
    """Whether the process has terminated (it may still be a zombie)."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(0))


def end_of(pidfd: int) -> End | None:
    """The exit status of a process that has ended and been reaped; None: not (yet) told by this kernel."""
    info = bytearray(_INFO_SIZE)
    struct.pack_into("Q", info, 0, _INFO_EXIT)
    try:
        fcntl.ioctl(pidfd, _GET_INFO, info)
    except OSError:
        return None
    if not struct.unpack_from("Q", info)[0] & _INFO_EXIT:
        return None
    return from_status(struct.unpack_from("i", info, _EXIT_CODE_AT)[0], "pidfd")


def exists(pid: int) -> bool:
    """Whether the pid is in use, also where /proc hides it (hidepid=2 answers ENOENT for living processes)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    except OverflowError:
        return False
    return True


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
