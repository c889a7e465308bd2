"""sglang/srt/managers/.../load_snapshot.py: an idle rank publishes its load under a file lock."""

from __future__ import annotations

from sgmon.demo import faults


class ShmLoadSnapshotWriter:
    """In ``warmup-stuck`` the lock is never free."""

    def write(self) -> None:
        file_lock()


def file_lock() -> None:
    faults.load_kernel()
