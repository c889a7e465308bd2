"""Where the server's output goes: the file behind its descriptors 2 and 1, or why there is none to read."""

from __future__ import annotations

from typing import NamedTuple

from sgmon.discovery.inner import Inside
from sgmon.model import Missing
from sgmon.proc import fds, files, mounts, stat

_WRITE_FLAGS = 0o3  # O_WRONLY | O_RDWR (fcntl.h)
_GIVE_LOG = "give the file with --log"


class LogTarget(NamedTuple):
    """``path`` is what to read from here ("" when there is nothing to read); kinds as in ``Server.log_kind``."""

    path: str = ""
    kind: str = "none"
    source: str = ""
    inner_path: str = ""
    missing: Missing | None = None


def find(inside: Inside) -> LogTarget:
    """SGLang logs to stderr and prints access lines to stdout (srt/utils ``configure_logger``; uvicorn): 2 wins."""
    try:
        out = fds.link(inside.root, inside.pid, 1)
        err = fds.link(inside.root, inside.pid, 2)
    except OSError as error:
        return LogTarget(missing=_hidden(error, inside.root))
    if err is None and out is None:
        return LogTarget(source=f"fd 1 and 2 of pid {inside.pid} are closed")
    same = err == out
    fd, target = (2, err) if err is not None else (1, out)
    if not same and fds.kind(err) not in ("file", "deleted", "pipe") and fds.kind(out) in ("file", "deleted", "pipe"):
        fd, target = 1, out
    which = f"fd 1 and 2 of pid {inside.pid}" if same else f"fd {fd} of pid {inside.pid}"
    if not same:
        other = 3 - fd
        which += f" (fd {other} goes elsewhere: {fds.kind(out if other == 1 else err)})"
    return _follow(inside, fd, target or "", which)


def _follow(inside: Inside, fd: int, target: str, which: str) -> LogTarget:
    kind = fds.kind(target)
    if kind == "file":
        path = inside.prefix + target
        return LogTarget(path, kind, which, target if inside.prefix else "")
    if kind == "deleted":
        return _deleted(inside, fd, target, which)
    if kind == "pipe":
        return _piped(inside, target, which)
    why, remedy = {
        "pty": (
            "the server writes to a terminal, which keeps nothing that could be read",
            "start it as: ... > FILE 2>&1",
        ),
        "socket": ("the server writes into a socket", "its log is with journalctl _PID=PID, or with docker logs"),
        "null": ("the server's output goes to /dev/null", "start it with its output in a file"),
    }.get(kind, (f"the server's output goes to {target}", "start it with its output in a file"))
    return LogTarget("", kind, which, "", Missing("log", why, f"{remedy}; or {_GIVE_LOG}"))


def _deleted(inside: Inside, fd: int, target: str, which: str) -> LogTarget:
    """A deleted file lives on behind the descriptor; it is opened there only when its file system is a local one."""
    mount = mounts.of_path(inside.rows, target.removesuffix(" (deleted)"))
    inner = target.removesuffix(" (deleted)")
    if mount is None or mount.remote:
        where = mount.fstype if mount else "an unknown file system"
        why = f"the log file was deleted, and lies on {where}, where a read may hang"
        return LogTarget("", "deleted", which, inner, Missing("log", why, _GIVE_LOG))
    return LogTarget(f"{inside.root}/{inside.pid}/fd/{fd}", "deleted", f"{which}, file deleted: {inner}", inner)


def _piped(inside: Inside, target: str, which: str) -> LogTarget:
    """The reader of a pipe has it as its descriptor 0; what that one writes (tee FILE, cat > FILE) is the log."""
    for pid in stat.pids(inside.root):
        try:
            if pid == inside.pid or fds.link(inside.root, pid, 0) != target:
                continue
            name = stat.read(inside.root, pid).comm
            written = _written(inside.root, pid)
        except OSError:
            continue
        source = f"{which} -> pipe -> {name} (pid {pid})"
        if written:
            return LogTarget(inside.prefix + written, "file", source, written if inside.prefix else "")
        why = f"the server writes into a pipe to {name} (pid {pid}), which writes no file"
        return LogTarget("", "pipe", source, "", Missing("log", why, _GIVE_LOG))
    why = "the server writes into a pipe, and its reader is not visible"
    return LogTarget("", "pipe", which, "", Missing("log", why, f"{_GIVE_LOG}, or run sgmon with sudo"))


def _written(root: str, pid: int) -> str:
    """The regular file that a reader writes: its own output first, else the first one open for writing."""
    targets = fds.read(root, pid)
    for fd in sorted(targets, key=lambda n: (n <= 2 and n != 1, n != 1, n)):
        if fd != 0 and fds.kind(targets[fd]) == "file" and _writes(root, pid, fd):
            return targets[fd]
    return ""


def _writes(root: str, pid: int, fd: int) -> bool:
    """The flags line of fdinfo is octal (proc_pid_fdinfo(5))."""
    for line in files.text(f"{root}/{pid}/fdinfo/{fd}").splitlines():
        if line.startswith("flags:"):
            return bool(int(line.split()[1], 8) & _WRITE_FLAGS)
    return False


def _hidden(error: OSError, root: str) -> Missing:
    found = files.missing("log", error, root)
    return Missing("log", found.why, f"{found.remedy}; or {_GIVE_LOG}" if found.remedy else _GIVE_LOG)
