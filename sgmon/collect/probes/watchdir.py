"""Folders that the run writes into (``--watch-dir``): count, size and newest change, a look each two seconds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from sgmon.collect.probes.base import Watched
from sgmon.discovery import inner
from sgmon.model import WatchDirReading, WatchedDir
from sgmon.proc import child, mounts

INTERVAL_S = 2.0
#: a look that took long is repeated later: it may take a twentieth of the time
SHARE = 20.0
MOST_ENTRIES = 20_000
#: seconds for one folder
LOOK_S = 1.5
_BLOCK = 512  # the unit of st_blocks, whatever the file system
#: a folder that another machine answers for; one line a file, cut by head
_FIND = 'find "$1" -xdev -printf "%y %s %b %T@\\n" 2>/dev/null | head -n "$2"'


class WatchDirProbe:
    """Silent without ``--watch-dir``."""

    name = "watchdir"
    kind = "watchdir"
    deadline_s = 5.0

    def __init__(self, watched: Watched) -> None:
        self.interval_s = INTERVAL_S
        self._watched = watched
        self._now = watched.clock.now

    def read(self) -> WatchDirReading | None:
        paths = self._watched.settings.watch_dirs
        if not paths:
            return None
        start = self._now()
        reading = WatchDirReading(tuple(self._look(path) for path in paths))
        self.interval_s = max(INTERVAL_S, SHARE * (self._now() - start))
        return reading

    def close(self) -> None:
        """Nothing is kept open."""

    def _look(self, path: str) -> WatchedDir:
        """As we see the path; where there is nothing, as the server sees it (a container)."""
        root, server = self._watched.settings.proc_root, self._watched.server
        rows = mounts.read(root)
        mount = mounts.of_path(rows, path)
        if mount is not None and mount.remote:
            return far(path, path)
        if os.path.isdir(path) or server is None:
            return near(path, path, self._now)
        inside = inner.of(root, server.pid)
        return far(path, inside.reach(path)) if inside.remote(path) else near(path, inside.reach(path), self._now)


def near(name: str, path: str, now: Callable[[], float]) -> WatchedDir:
    """A local folder. Links are not followed, other file systems below it not entered."""
    end = now() + LOOK_S
    tally = _Tally()
    todo = [path]
    try:
        top = os.stat(path)
    except OSError as err:
        return WatchedDir(name, note=_why(err))
    tally.newest = top.st_mtime
    while todo:
        for entry in _entries(todo.pop()):
            if tally.entries >= MOST_ENTRIES or (tally.entries % 256 == 0 and now() > end):
                return tally.of(name, cut=True)
            try:
                seen = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    if seen.st_dev == top.st_dev:
                        todo.append(entry.path)
                    tally.add(None, 0, seen.st_mtime)
                elif entry.is_file(follow_symlinks=False):
                    tally.add(seen.st_size, seen.st_blocks, seen.st_mtime)
            except OSError:
                continue  # it is gone meanwhile
    return tally.of(name, cut=False)


def far(name: str, path: str) -> WatchedDir:
    """A folder whose file system may never answer: asked through a child that can be left behind."""
    said = child.output(["sh", "-c", _FIND, "sh", path, str(MOST_ENTRIES + 1)], LOOK_S)
    if not said:
        silent = "its file system does not answer in time"
        return WatchedDir(name, note=silent if said is None else "not there yet, or not readable")
    tally = _Tally()
    for line in said.decode("ascii", "replace").splitlines():
        kind, *numbers = line.split()
        if kind not in ("f", "d") or len(numbers) != 3:
            continue
        size, blocks, changed = int(numbers[0]), int(numbers[1]), float(numbers[2])
        tally.add(size if kind == "f" else None, blocks, changed)
    return tally.of(name, cut=tally.entries > MOST_ENTRIES)


class _Tally:
    """The sums of one look."""

    def __init__(self) -> None:
        self.entries = self.files = self.size = self.used = 0
        self.newest = 0.0

    def add(self, size: int | None, blocks: int, changed: float) -> None:
        """size None: a folder, whose own change tells that something in it was made or removed."""
        self.entries += 1
        self.newest = max(self.newest, changed)
        if size is not None:
            self.files += 1
            self.size += size
            self.used += blocks * _BLOCK

    def of(self, name: str, *, cut: bool) -> WatchedDir:
        return WatchedDir(name, self.files, self.size, self.used, self.newest or None, cut)


def _entries(path: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            yield from found
    except OSError:
        return  # gone meanwhile, or not ours to read


def _why(err: OSError) -> str:
    if isinstance(err, FileNotFoundError):
        return "not there yet"
    return f"cannot be read ({err.strerror})"
