"""A path by which a UNIX socket of another process is reached: in its own mounts, and short enough for connect(2)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

#: sockaddr_un has room for 107 bytes and an end
_LONGEST = 107


@contextmanager
def connectable(root: str, pid: int, path: str) -> Iterator[str]:
    """``path`` as the process sees it: below its root, or, if relative, below its working directory. Where that may
    not be read, or is our own, the path itself. A path that is too long is reached by a descriptor of its folder."""
    seen = _as_seen(root, pid, path)
    if len(os.fsencode(seen)) <= _LONGEST:
        yield seen
        return
    folder, name = os.path.split(seen)
    try:
        fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield seen  # connect says what is wrong with it
        return
    try:
        yield f"/proc/self/fd/{fd}/{name}"
    finally:
        os.close(fd)


def _as_seen(root: str, pid: int, path: str) -> str:
    if not path.startswith("/"):
        return f"{root}/{pid}/cwd/{path}"
    try:
        own = os.stat(f"{root}/{pid}/root/")
        here = os.stat("/")
        same = (own.st_dev, own.st_ino) == (here.st_dev, here.st_ino)
        return path if same else f"{root}/{pid}/root{path}"
    except OSError:
        return path
