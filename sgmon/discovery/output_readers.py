"""Who reads a server's output at the other end of a pipe or a terminal, and the file that this process writes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from sgmon.patterns import regex
from sgmon.proc import fds, files, stat

_WRITE_FLAGS = 0o3  # O_WRONLY | O_RDWR (fcntl.h)
#: programs that keep what a terminal shows; others with a terminal's master (sshd, a desktop) keep no file
_KEEPERS = ("script", "tmux: server", "tmux")
_RUNTIMES = ("conmon", "containerd-shim")  # what they read is asked for through ``containers``
_MASTERS = ("/dev/ptmx", "/dev/pts/ptmx")
_INDEX = regex(r"^tty-index:\s*(\d+)", re.MULTILINE)  # fdinfo of a master, since Linux 4.14
_PTS = regex(r"^/dev/pts/(\d+)$")


class Reader(NamedTuple):
    """A process that reads the output. ``files``: the regular files that it may write it into, the likeliest first;
    ``out``: its own descriptor 1."""

    pid: int
    name: str
    files: tuple[str, ...] = ()
    out: str = ""


def of_pipe(root: str, pid: int, target: str) -> Reader | None:
    """Who has the pipe as its descriptor 0, as tee and ts have."""
    for other in stat.pids(root):
        try:
            if other != pid and fds.link(root, other, 0) == target:
                return _reader(root, other)
        except OSError:
            continue
    return None


def anywhere(root: str, pid: int, target: str) -> Reader | None:
    """Who has the reading end of the pipe on any descriptor, as supervisord has. Looks at every descriptor of every
    process (20-40 ms)."""
    for other in stat.pids(root):
        try:
            if other == pid or stat.read(root, other).comm.startswith(_RUNTIMES):
                continue
            held = [fd for fd, its in fds.read(root, other).items() if its == target]
            if any(not _writes(root, other, fd) for fd in held):
                return _reader(root, other)
        except OSError:
            continue
    return None


def reads_itself(root: str, pid: int, target: str) -> bool:
    """Whether the process has the reading end of its own output, as the kernel of a notebook has."""
    try:
        held = [fd for fd, its in fds.read(root, pid).items() if its == target]
        return any(not _writes(root, pid, fd) for fd in held)
    except OSError:
        return False


def of_terminal(root: str, pid: int, target: str) -> Iterator[Reader]:
    """``script`` above the terminal, or the commands that tmux pipe-pane has started (of any pane)."""
    index = _PTS.match(target)
    for other in stat.pids(root) if index else ():
        try:
            name = stat.read(root, other).comm
            if name not in _KEEPERS or not _same_mounts(root, pid, other):
                continue
            if index is None or int(index[1]) not in _terminals(root, other):
                continue
        except OSError:
            continue
        yield from [_reader(root, other)] if name == "script" else _pane_pipes(root, other)


def _terminals(root: str, pid: int) -> set[int]:
    """N of the /dev/pts/N whose masters the process holds."""
    masters = [fd for fd, target in fds.read(root, pid).items() if target in _MASTERS]
    found = (_INDEX.search(files.text(f"{root}/{pid}/fdinfo/{fd}")) for fd in masters)
    return {int(match[1]) for match in found if match}


def _pane_pipes(root: str, server: int) -> Iterator[Reader]:
    """Children, and theirs, of a tmux server that read a socket and write a file (cmd-pipe-pane.c: a socketpair)."""
    parents = {server}
    table = {}
    for pid in stat.pids(root):
        try:
            table[pid] = stat.read(root, pid).ppid
        except OSError:
            continue
    parents |= {pid for pid, parent in table.items() if parent == server}
    for pid, parent in table.items():
        try:
            if parent in parents and fds.kind(fds.link(root, pid, 0)) == "socket":
                reader = _reader(root, pid)
                if reader.files:
                    yield reader
        except OSError:
            continue


def _reader(root: str, pid: int) -> Reader:
    """Descriptor 2 has the reader's own complaints, never what it reads. Files that its parent has open too were open
    before it began (the output of the start script, a lock of it): they count only where nothing else does."""
    targets = fds.read(root, pid)
    seen, out = stat.read(root, pid), targets.get(1, "")
    order = sorted(targets, key=lambda n: (n != 1, n))
    written = [
        targets[n] for n in order if n not in (0, 2) and fds.kind(targets[n]) == "file" and _writes(root, pid, n)
    ]
    inherited = _open_at(root, seen.ppid) if written else set()
    own = [target for target in written if target not in inherited]
    if not own and fds.kind(out) not in ("pipe", "socket", "pty"):
        own = written
    return Reader(pid, seen.comm, tuple(dict.fromkeys(own)), out)


def _open_at(root: str, pid: int) -> set[str]:
    """What a process has open; nothing where that may not be read."""
    try:
        return set(fds.read(root, pid).values())
    except OSError:
        return set()


def _writes(root: str, pid: int, fd: int) -> bool:
    """The flags line of fdinfo is octal (proc_pid_fdinfo(5))."""
    for line in files.text(f"{root}/{pid}/fdinfo/{fd}").splitlines():
        if line.startswith("flags:"):
            return bool(int(line.split()[1], 8) & _WRITE_FLAGS)
    return False


def _same_mounts(root: str, one: int, other: int) -> bool:
    """Whether both see the same /dev/pts; what is hidden counts as the same."""
    try:
        return os.readlink(f"{root}/{one}/ns/mnt") == os.readlink(f"{root}/{other}/ns/mnt")
    except OSError:
        return True
