"""/proc/locks: who holds a file lock, who waits for it. World-readable; processes of other pid namespaces are 0."""

from __future__ import annotations

from typing import NamedTuple

from sgmon.proc import files


class Lock(NamedTuple):
    """One row. ``file`` is "major:minor:inode" (hexadecimal device numbers), as the kernel prints it."""

    number: int
    kind: str  # FLOCK | POSIX | OFDLCK
    pid: int
    file: str
    waiting: bool


def parse(text: str) -> list[Lock]:
    """ "1: FLOCK ADVISORY WRITE 8621 fe:00:2230572 0 EOF"; a waiter has "->" after the lock's number."""
    found = []
    for line in text.splitlines():
        cells = line.split()
        waiting = len(cells) > 1 and cells[1] == "->"
        if waiting:
            del cells[1]
        if len(cells) < 6:
            continue
        try:
            found.append(Lock(int(cells[0].rstrip(":")), cells[1], int(cells[4]), cells[5], waiting))
        except ValueError:
            continue
    return found


def read(root: str) -> list[Lock]:
    return parse(files.text(f"{root}/locks"))


def holder(rows: list[Lock], pid: int) -> int | None:
    """The process that holds the lock which ``pid`` waits for; None: no such wait, or the holder is not visible."""
    wanted = next((row for row in rows if row.waiting and row.pid == pid), None)
    if wanted is None:
        return None
    for row in rows:
        if not row.waiting and row.file == wanted.file and row.number == wanted.number:
            return row.pid if row.pid > 0 else None
    return None
