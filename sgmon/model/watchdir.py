"""Folders that the run writes into, watched on request: how many files, how large, growing or not."""

from __future__ import annotations

from msgspec import Struct


class WatchedDir(Struct, frozen=True):
    """One folder, with all below it. files None: it could not be read, ``note`` says why.

    used_bytes: what the files occupy; it grows where a file was made with its full size and is filled through mmap.
    newest_epoch: wall clock of the newest modification of a file or folder. cut: there is more than was counted (too
    many entries, or no time): the numbers are of a part.
    """

    path: str
    files: int | None = None
    size_bytes: int | None = None
    used_bytes: int | None = None
    newest_epoch: float | None = None
    cut: bool = False
    note: str = ""


class WatchDirReading(Struct, frozen=True):
    """One look at all of them."""

    dirs: tuple[WatchedDir, ...] = ()
