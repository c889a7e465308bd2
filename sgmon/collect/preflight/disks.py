"""The file systems that a start writes to: room, read-only, quota, and whether another machine answers for them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from sgmon.collect.preflight import locks, quota
from sgmon.discovery.inner import Inside
from sgmon.model import Server
from sgmon.model.preflight import Space
from sgmon.proc import child, mounts

STATFS_S = 2.0
#: free bytes are given in steps, so that an unchanged disk reads the same; small ones as they are, for they decide
_SMALL, _STEP, _COARSE = 64 * 1024**2, 1024**2, 64 * 1024**2
_STEP_BELOW = 2 * 1024**3
FILES, LOOKED_AT_MOST = 100_000, 5_000
#: no server makes a segment before it has imported so long
IMPORTS_S = 2.0


def spaces(inside: Inside, server: Server, environ: Mapping[str, str]) -> tuple[Space, ...]:
    """The file systems that the start writes to; each once."""
    home = environ.get("HOME") or "/root"
    caches = environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
    asked = [("shared memory", "/dev/shm"), ("caches", caches), ("temporary files", environ.get("TMPDIR") or "/tmp")]
    asked += [("caches", folder) for folder in locks.folders(environ)]
    if server.log_kind == "file" and server.log_path:
        asked.append(("log", os.path.dirname(server.log_path)))
    found = tuple(_unique(quota.of(inside, _space(inside, what, path)) for what, path in asked))
    return tuple(_with_new(inside, space, server) if space.what == "shared memory" else space for space in found)


def _with_new(inside: Inside, space: Space, server: Server) -> Space:
    """``space`` with the bytes of files that were made there since the server began, its own segments among them."""
    began, taken = server.started_epoch, 0
    if began is None or space.remote or space.free_bytes is None:
        return space
    try:
        with os.scandir(inside.reach(space.path)) as entries:
            for entry in itertools.islice(entries, LOOKED_AT_MOST):
                status = entry.stat(follow_symlinks=False)
                taken += status.st_blocks * 512 if status.st_ctime >= began + IMPORTS_S else 0
    except OSError:
        pass
    return replace(space, new_bytes=_stepped(taken))


def _unique(found: Iterator[Space]) -> Iterator[Space]:
    seen: set[tuple[object, ...]] = set()
    for space in found:
        key = (space.what, space.free_bytes, space.total_bytes, space.fstype, space.hung)
        if key not in seen:
            seen.add(key)
            yield space


def _space(inside: Inside, what: str, path: str) -> Space:
    mount = mounts.of_path(inside.rows, path)
    fstype = mount.fstype if mount is not None else ""
    if inside.remote(path):
        return _remote_space(what, path, inside.reach(path), fstype)
    here = inside.reach(path)
    while not os.path.exists(here) and len(here) > 1:
        here = os.path.dirname(here)  # it will be made there
    try:
        seen = os.statvfs(here)
    except OSError:
        return Space(what, path, fstype=fstype)
    free, total = seen.f_bavail * seen.f_frsize, seen.f_blocks * seen.f_frsize
    read_only = bool(seen.f_flag & os.ST_RDONLY)
    free_files = seen.f_favail if seen.f_files else None  # btrfs and others count none
    return Space(what, path, _stepped(free), total, read_only, fstype=fstype, free_files=_few(free_files))


def _remote_space(what: str, path: str, here: str, fstype: str) -> Space:
    said = child.output(["stat", "-f", "-c", "%a %b %S %d %c", here], STATFS_S)
    cells = (said or b"").split()
    if len(cells) != 5:
        return Space(what, path, remote=True, hung=said is None, fstype=fstype)
    free, total, unit, free_files, files = map(int, cells)
    left = _few(free_files if files > 0 else None)
    return Space(what, path, _stepped(free * unit), total * unit, remote=True, fstype=fstype, free_files=left)


def _stepped(free: int) -> int:
    step = 1 if free < _SMALL else _STEP if free < _STEP_BELOW else _COARSE
    return free // step * step


def _few(files: int | None) -> int | None:
    """As told where it is small; many are as good as any number."""
    return None if files is None else min(files, FILES)
