"""/proc/PID/syscall: the system call a thread is blocked in. Needs PTRACE_MODE_ATTACH (proc(5))."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import NamedTuple

from sgmon.model import BlockedCall
from sgmon.proc import files, syscall_table
from sgmon.text import clean

#: calls whose first argument is a descriptor
_FD_NAMES = """
read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 recvfrom recvmsg recvmmsg sendto sendmsg
sendmmsg connect accept accept4 shutdown ioctl fcntl flock fsync fdatasync ftruncate fallocate getdents getdents64
epoll_wait epoll_pwait epoll_pwait2 lseek fstat sendfile splice copy_file_range sync_file_range syncfs io_uring_enter
close
"""
_FD_FIRST = frozenset(_FD_NAMES.split())
#: calls with a path: which argument it is. Those with path 1 have the descriptor of a folder before it
_PATHS = {
    **dict.fromkeys(("open", "stat", "lstat", "access", "readlink", "statfs", "getxattr", "execve", "chdir"), 0),
    **dict.fromkeys(("openat", "openat2", "newfstatat", "statx", "faccessat", "faccessat2", "readlinkat"), 1),
}
AT_FDCWD = -100  # fcntl.h
_PATH_BYTES = 512
_LOCK_COMMANDS = {7: "F_SETLKW", 38: "F_OFD_SETLKW"}  # fcntl.h
_POLL_LIMIT = 8


class Raw(NamedTuple):
    """number None: running; -1: in the kernel but in no call (a page fault, a stop)."""

    number: int | None
    args: tuple[int, ...] = ()


def parse(text: str) -> Raw:
    """ "running", "-1 SP PC", or "NR ARG0..ARG5 SP PC" (hexadecimal). ValueError: none of these."""
    cells = text.split()
    if cells[:1] == ["running"]:
        return Raw(None)
    return Raw(int(cells[0]), tuple(int(cell, 16) for cell in cells[1:7]) if len(cells) >= 9 else ())


def read(root: str, pid: int | str) -> Raw:
    """Of the main thread; of the thread for "PID/task/TID"."""
    try:
        return parse(files.small(f"{root}/{pid}/syscall").decode("ascii", "replace"))
    except (ValueError, IndexError):
        raise ProcessLookupError(3, "no line") from None


def decode(
    raw: Raw, describe: Callable[[int], str], peek: Callable[[int, int], bytes | None], machine: str = ""
) -> BlockedCall | None:
    """The call in words; None while running. ``describe(fd)`` names what a descriptor is (``AT_FDCWD``: the current
    folder); ``peek(address, size)`` reads the process's memory, or gives None when that is not permitted."""
    if raw.number is None:
        return None
    if raw.number < 0:
        return BlockedCall(-1, "")
    name = syscall_table.name(raw.number, machine)
    args = raw.args + (0,) * (6 - len(raw.args))
    if name in ("poll", "ppoll"):
        return _poll(raw.number, name, args, describe, peek)
    if name in ("select", "pselect6"):
        return BlockedCall(raw.number, name, note=f"up to {_int(args[0])} descriptors{_forever(args[4])}")
    if name == "futex":
        return BlockedCall(raw.number, name, note="no time-out" if args[3] == 0 else "with time-out")
    if name in ("wait4", "waitid"):
        child = _int(args[0] if name == "wait4" else args[1])
        return BlockedCall(raw.number, name, target=f"pid {child}" if child > 0 else "any child")
    if name in _PATHS:
        return BlockedCall(raw.number, name, target=_path(args, _PATHS[name], describe, peek))
    if name not in _FD_FIRST:
        return BlockedCall(raw.number, name)
    fd = _int(args[0])
    timeout = _int(args[3]) if name in ("epoll_wait", "epoll_pwait") else None
    note = _LOCK_COMMANDS.get(args[1], "") if name == "fcntl" else ""
    return BlockedCall(
        raw.number, name, fd=fd, target=describe(fd), timeout_ms=None if timeout == -1 else timeout, note=note
    )


def waits_for_lock(call: BlockedCall | None) -> bool:
    """Whether this call is a wait for a file lock."""
    return call is not None and (call.name == "flock" or (call.name == "fcntl" and call.note != ""))


def memory(root: str, pid: int, address: int, size: int) -> bytes | None:
    """``size`` bytes of the process's memory, read without stopping it; None when not permitted."""
    try:
        fd = os.open(f"{root}/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(fd, size, address)
        finally:
            os.close(fd)
    except (OSError, OverflowError):
        return None


def _poll(
    number: int,
    name: str,
    args: tuple[int, ...],
    describe: Callable[[int], str],
    peek: Callable[[int, int], bytes | None],
) -> BlockedCall:
    """struct pollfd is { int fd; short events; short revents; } (poll(2))."""
    count = args[1]
    timeout = _int(args[2]) if name == "poll" else None
    if name == "ppoll" and args[2]:
        span = peek(args[2], 16)
        if span and len(span) == 16:
            seconds, nanos = struct.unpack("<qq", span)
            timeout = seconds * 1000 + nanos // 1_000_000
    forever = timeout == -1 or (name == "ppoll" and args[2] == 0)
    note = f"{count} descriptor{_s(count)}" + (", no time-out" if forever else "")
    data = peek(args[0], 8 * count) if 0 < count <= _POLL_LIMIT else None
    fd, target = None, ""
    if data and len(data) == 8 * count:
        polled = [struct.unpack_from("<ihh", data, 8 * i)[0] for i in range(count)]
        fd = polled[0]
        target = ", ".join(describe(each) for each in polled if each >= 0)
    return BlockedCall(number, name, fd, target, None if forever else timeout, note)


def _path(
    args: tuple[int, ...], place: int, describe: Callable[[int], str], peek: Callable[[int, int], bytes | None]
) -> str:
    """The path of a call, absolute where that can be told; "" where the memory may not be read."""
    data = peek(args[place], _PATH_BYTES)
    if data is None:
        return ""
    name = data.partition(b"\0")[0].decode("utf-8", "replace")
    if name.startswith("/"):
        return clean(name, 300)
    folder = describe(_int(args[0]) if place else AT_FDCWD)
    return clean(f"{folder}/{name}".rstrip("/"), 300) if folder else clean(name, 300)


def _int(value: int) -> int:
    """The low 32 bits as a signed int, as the kernel takes them."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _forever(pointer: int) -> str:
    return ", no time-out" if pointer == 0 else ""


def _s(count: int) -> str:
    return "" if count == 1 else "s"
