"""Folders that the run writes into, watched on request: how many files, how large, growing or not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WatchedDir:
    """One folder, with all below it. files None: it could not be read, ``note`` says why.

    newest_epoch: wall clock of the newest modification. cut: there is more than was counted (too many entries, or
    no time): the numbers are of a part.
    """

    path: str
    files: int | None = None
    size_bytes: int | None = None
    newest_epoch: float | None = None
    newest_name: str = ""
    cut: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class WatchDirReading:
    """One look at all of them."""

    dirs: tuple[WatchedDir, ...] = ()
