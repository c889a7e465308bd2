"""Small reads below /proc, and the words for a read that was refused."""

from __future__ import annotations

import errno
import os

from sgmon.model import Missing

_CHUNK = 1 << 16


def read(path: str, limit: int = 1 << 26) -> bytes:
    """The whole of one /proc file (at most ``limit`` bytes). ENOENT or ESRCH: the process is gone."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(fd, _CHUNK)
        if not data:
            return data
        parts = [data]
        have = len(data)
        while data and have < limit:  # seq files may answer short in the middle: only b"" is the end
            data = os.read(fd, _CHUNK)
            parts.append(data)
            have += len(data)
        return b"".join(parts) if len(parts) > 1 else parts[0]
    finally:
        os.close(fd)


def small(path: str) -> bytes:
    """A file that the kernel prints in one piece (stat, status, io, schedstat, wchan, syscall): one read, no second
    one to see the end."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _CHUNK)
    finally:
        os.close(fd)


def text(path: str, limit: int = 1 << 26) -> str:
    """``read`` as text; bytes that are no UTF-8 are replaced."""
    return read(path, limit).decode("utf-8", "replace")


def is_gone(err: OSError) -> bool:
    """Whether this error means that the process (or thread) no longer exists."""
    return err.errno in (errno.ENOENT, errno.ESRCH)


def is_own_limit(err: OSError) -> bool:
    """Whether this error tells nothing of what was read: sgmon itself has no descriptor or no memory left."""
    return err.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def missing(signal: str, err: OSError, root: str = "/proc") -> Missing:
    """Why ``signal`` could not be read, and what would give it (permissions as in proc(5) and ptrace(2))."""
    name = errno.errorcode.get(err.errno or 0, str(err.errno))
    if err.errno not in (errno.EPERM, errno.EACCES):
        return Missing(signal, f"cannot be read here ({name})")
    if signal in ("syscall", "mem", "stack"):
        return Missing(signal, f"the kernel refuses it ({name}{_yama_words(root)})", attach_remedy(root))
    return Missing(
        signal,
        f"hidden: the process belongs to another user or has more rights ({name})",
        "run sgmon as the server's user or with sudo; in docker: --cap-add SYS_PTRACE",
    )


def yama_scope(root: str = "/proc") -> int | None:
    """kernel.yama.ptrace_scope: 0 same user, 1 descendants only, 2 CAP_SYS_PTRACE, 3 nobody; None without Yama."""
    try:
        return int(read(f"{root}/sys/kernel/yama/ptrace_scope"))
    except (OSError, ValueError):
        return None


def attach_remedy(root: str = "/proc") -> str:
    """What gives the rights of PTRACE_MODE_ATTACH (the blocked call, memory, py-spy)."""
    scope = yama_scope(root)
    if scope == 3:
        return "ptrace_scope is 3: it can only be lowered by a reboot"
    sysctl = ", or: sudo sysctl kernel.yama.ptrace_scope=0" if scope in (1, 2) else ""
    return f"run sgmon with sudo{sysctl}; in docker: --cap-add SYS_PTRACE"


def _yama_words(root: str) -> str:
    scope = yama_scope(root)
    return f", ptrace_scope={scope}" if scope else ""
