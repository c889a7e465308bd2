"""A watched folder in words, for the report and for panels. Pure."""

from __future__ import annotations

from sgmon.model import WatchedDir
from sgmon.text import clean
from sgmon.units import lasting, plural, size


def words(folder: WatchedDir, now_epoch: float) -> str:
    """ "12 files, 34.1 MiB, last change 3s ago"; why it cannot be read, where that is so."""
    if folder.files is None:
        return clean(folder.note, 80) or "not looked at yet"
    least = "at least " if folder.cut else ""
    parts = [f"{least}{plural(folder.files, 'file')}", size(folder.size_bytes)]
    if folder.newest_epoch is not None:
        parts.append(f"last change {lasting(max(0.0, now_epoch - folder.newest_epoch))} ago")
    return ", ".join(parts)
