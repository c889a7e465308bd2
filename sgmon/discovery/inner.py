"""Files as the server sees them: its mount namespace, its working directory, its environment.

What lies on a file system that another machine answers for is read by a child process with a deadline.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from sgmon.proc import child, files, mounts

REMOTE_S = 1.0
_MOST_LINKS = 256  # parts of a path and its links


class Inside(NamedTuple):
    """How to reach the server's files from here. ``prefix`` is "" when it shares our mounts."""

    root: str
    pid: int
    prefix: str = ""
    cwd: str = ""
    rows: tuple[mounts.Mount, ...] = ()

    def reach(self, path: str) -> str:
        """The path from here of a path as the server sees it (relative ones from its working directory)."""
        inner = path if path.startswith("/") else os.path.normpath(f"{self.cwd or '/'}/{path}")
        return self.prefix + self.real(inner)

    def real(self, path: str) -> str:
        """The path as the server sees it with its symbolic links followed: below ``prefix`` an absolute one would
        lead into our own files. Unchanged where we share its mounts, and on a file system that may hang."""
        left = path.strip("/").split("/") if self.prefix and not self.remote(path) else []
        done = "" if left else path
        for _ in range(_MOST_LINKS):
            if not left:
                break
            name = left.pop(0)
            target = None if name in (".", "..") else _link(f"{self.prefix}{done}/{name}")
            if target is None:
                done = os.path.normpath(f"{done}/{name}") if name != ".." else os.path.dirname(done)
                continue
            done = "" if target.startswith("/") else done
            left = [part for part in target.split("/") if part] + left
        return "/".join([done, *left])

    def remote(self, path: str) -> bool:
        """Whether the path lies on a file system whose answer may never come."""
        inner = path if path.startswith("/") else os.path.normpath(f"{self.cwd or '/'}/{path}")
        mount = mounts.of_path(self.rows, inner)
        return mount is not None and mount.remote

    def text(self, path: str, limit: int = 1 << 16) -> str:
        """The first ``limit`` bytes of a file; "" when it cannot be read (in time)."""
        here = self.reach(path)
        if self.remote(path):
            return (child.output(["head", "-c", str(limit), here], REMOTE_S) or b"").decode("utf-8", "replace")
        try:
            return files.read(here, limit)[:limit].decode("utf-8", "replace")
        except OSError:
            return ""

    def listing(self, path: str) -> list[str]:
        """The names in a folder, sorted; [] when it cannot be read (in time)."""
        here = self.reach(path)
        if self.remote(path):
            return (child.output(["ls", "-1", here], REMOTE_S) or b"").decode("utf-8", "replace").splitlines()
        try:
            return sorted(os.listdir(here))
        except OSError:
            return []

    def has(self, path: str) -> bool:
        """Whether there is such a file."""
        if self.remote(path):
            return child.output(["test", "-f", self.reach(path)], REMOTE_S) is not None
        return os.path.isfile(self.reach(path))


def of(root: str, pid: int) -> Inside:
    """What may be known of the process; what is hidden counts as shared with us."""
    cwd = _link(f"{root}/{pid}/cwd") or ""
    own, its = _link(f"{root}/self/ns/mnt"), _link(f"{root}/{pid}/ns/mnt")
    prefix = f"{root}/{pid}/root" if own and its and own != its else ""
    try:
        rows = mounts.read(root, pid)
    except OSError:
        rows = ()
    return Inside(root, pid, prefix, cwd, rows)


def environment(root: str, pid: int) -> dict[str, str] | None:
    """The initial environment; None when hidden. setproctitle blanks it: then it is empty."""
    try:
        data = files.read(f"{root}/{pid}/environ")
    except OSError:
        return None
    pairs = (item.decode("utf-8", "replace").partition("=") for item in data.split(b"\0") if item)
    return {name: value for name, _, value in pairs}


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
