"""The files that the server itself has open as its output, by its descriptors in /proc."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from sgmon.collect.logs.opening import identity_of, is_pipe
from sgmon.model import Server


def writer_files(root: Path, server: Server | None) -> list[tuple[Path, str]]:
    """What fd 1 and 2 of the server are, when they are files: (place in /proc, identity). stat follows the link
    without opening."""
    found: list[tuple[Path, str]] = []
    if server is None:
        return found
    for number in (1, 2):
        place = root / str(server.pid) / "fd" / str(number)
        try:
            status = os.stat(place)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            found.append((place, identity_of(status)))
    return found


def writer_of(root: Path, path: str, fd: int | None, server: Server | None) -> Path | None:
    """The /proc file that leads to the log where the path does not (renamed, deleted, another mount namespace); None
    where the path is right. fd: what the path has led to."""
    if server is None or path != server.log_path:
        return None
    files = writer_files(root, server) if not is_pipe(root / str(server.pid) / "fd" / "2") else []
    if not files or (fd is not None and identity_of(os.fstat(fd)) in [identity for _, identity in files]):
        return None
    return files[0][0]


def writer_offset(root: Path, server: Server | None, identity: str) -> int | None:
    """How far the server has written the file; None: it has not that file open, or it cannot be read."""
    for place, found in writer_files(root, server):
        if found == identity:
            try:
                info = (place.parent.parent / "fdinfo" / place.name).read_text("ascii", "replace")
                return int(info.split("pos:", 1)[1].split(None, 1)[0])
            except (OSError, IndexError, ValueError):
                return None
    return None
