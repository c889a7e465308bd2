"""/proc/PID/fd by readlink alone: where the output goes, and which descriptors tell something."""

from __future__ import annotations

import os
import re

from sgmon.model import FdTarget
from sgmon.patterns import regex
from sgmon.proc import files
from sgmon.proc.mounts import Mount, of_path
from sgmon.proc.net import Row
from sgmon.text import without_prefix

_SOCKET = regex(r"^socket:\[(\d+)\]$")
_NVIDIA = regex(r"^/dev/nvidia(\d+)$")
_LOCK_NAME = regex(r"(?:\.lock|\.lck|/lock|_lock|baton)(?: \(deleted\))?$", re.IGNORECASE)
_DOWNLOAD = regex(r"\.(?:incomplete|part|tmp|crdownload)$")  # huggingface_hub writes blobs/SHA.incomplete
_WEIGHTS = regex(r"\.(?:safetensors|gguf|bin|pt|pth)$")


def read(root: str, pid: int) -> dict[int, str]:
    """Descriptor -> target. Needs PTRACE_MODE_READ (EACCES otherwise)."""
    base = f"{root}/{pid}/fd"
    found = {}
    for name in os.listdir(base):
        try:
            found[int(name)] = os.readlink(f"{base}/{name}")
        except OSError as err:
            if not files.is_gone(err):
                raise
    return found


def link(root: str, pid: int, fd: int) -> str | None:
    """What one descriptor points at; None when it is closed (or the process gone). Other errors pass through."""
    try:
        return os.readlink(f"{root}/{pid}/fd/{fd}")
    except OSError as err:
        if files.is_gone(err):
            return None
        raise


def kind(target: str | None) -> str:
    """file | deleted | pipe | pty | socket | null | device | other | none, from the text of the link."""
    if target is None:
        return "none"
    for prefix, name in (("pipe:", "pipe"), ("socket:", "socket"), ("anon_inode:", "other")):
        if target.startswith(prefix):
            return name
    if target == "/dev/null":
        return "null"
    if target.startswith(("/dev/pts/", "/dev/tty", "/dev/console")):
        return "pty"
    if target.startswith("/dev/") and not target.startswith("/dev/shm/"):
        return "device"
    if not target.startswith("/"):
        return "other"
    return "deleted" if target.endswith(" (deleted)") else "file"


def inode(target: str) -> int | None:
    """The inode of a socket link; None for everything else."""
    match = _SOCKET.match(target)
    return int(match[1]) if match else None


def nvidia(targets: dict[int, str]) -> tuple[int, ...]:
    """Numbers N of the /dev/nvidiaN that are open. The launcher and the detokenizer open them too (seen on H200)."""
    return tuple(sorted({int(m[1]) for m in map(_NVIDIA.match, targets.values()) if m}))


def telling(targets: dict[int, str], rows: dict[int, Row], mounts: tuple[Mount, ...]) -> tuple[FdTarget, ...]:
    """The descriptors that a person would look at: locks, downloads, weights, TCP sockets, files on remote mounts."""
    notes = ((fd, target, note_of(target, rows, mounts)) for fd, target in sorted(targets.items()))
    return tuple(FdTarget(fd, target, note) for fd, target, note in notes if note)


def note_of(target: str, rows: dict[int, Row], mounts: tuple[Mount, ...]) -> str:
    """What makes this target worth a look; "" when nothing does."""
    number = inode(target)
    if number is not None:
        return rows[number].words if number in rows else ""
    if not target.startswith("/") or target.startswith(("/dev/", "/proc/", "/sys/", "/memfd:")):
        return "GPU device" if _NVIDIA.match(target) else ""
    words = []
    if _LOCK_NAME.search(target):
        words.append("lock file")
    elif _DOWNLOAD.search(target):
        words.append("download in progress")
    elif _WEIGHTS.search(target):
        words.append("weights")
    mount = of_path(mounts, target)
    if mount is not None and mount.remote:
        words.append(f"on {mount.fstype}")
    return ", ".join(words)


def position(root: str, pid: int, fd: int) -> int | None:
    """The file position of a descriptor (the "pos:" line of fdinfo), which read(2) and write(2) move, and pread(2)
    and mmap(2) do not. None: it cannot be read."""
    try:
        first = files.read(f"{root}/{pid}/fdinfo/{fd}").split(b"\n", 1)[0]
        return int(without_prefix(first, b"pos:"))
    except (OSError, ValueError):
        return None


def is_data(note: str) -> bool:
    """Whether ``note`` is that of a file which is read or written from its beginning to its end."""
    return note.startswith(("weights", "download in progress"))


def holds_lock(root: str, pid: int, fd: int) -> bool:
    """Whether a lock was taken through this descriptor (the "lock:" lines of fdinfo)."""
    try:
        return b"\nlock:" in b"\n" + files.read(f"{root}/{pid}/fdinfo/{fd}")
    except OSError:
        return False
