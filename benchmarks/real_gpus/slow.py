"""A slow disk for one process and its children: a cgroup with a limit of bytes read a second, else less read-ahead."""

from __future__ import annotations

import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
GROUP = CGROUPS / "sgmon-slow"
READ_AHEAD_KB = 16


class Slow:
    """``put`` says in words what was done; ``end`` takes it back."""

    def __init__(self, mb_s: int, folder: Path) -> None:
        self._mb_s = mb_s
        self._undo: list[tuple[Path, str]] = []
        self._device = _disk(os.stat(folder).st_dev) if mb_s else ""

    def put(self, pid: int) -> str:
        if not self._mb_s:
            return ""
        try:
            (CGROUPS / "cgroup.subtree_control").write_text("+io")
            GROUP.mkdir(exist_ok=True)
            (GROUP / "io.max").write_text(f"{self._device} rbps={self._mb_s * 1_000_000}")
            (GROUP / "cgroup.procs").write_text(str(pid))
            return f"io.max {self._mb_s} MB/s on {self._device}"
        except OSError as err:
            return f"no io.max ({err}); {self._less_ahead()}"

    def _less_ahead(self) -> str:
        path = Path(f"/sys/dev/block/{self._device}/queue/read_ahead_kb")
        try:
            self._undo.append((path, path.read_text()))
            path.write_text(str(READ_AHEAD_KB))
            return f"read-ahead of {READ_AHEAD_KB} KB"
        except OSError as err:
            return f"the disk is as it was ({err})"

    def end(self) -> None:
        for path, text in self._undo:
            path.write_text(text)
        if GROUP.exists():
            try:
                GROUP.rmdir()
            except OSError:
                pass


def _disk(number: int) -> str:
    """ "254:0": the whole disk of a partition's number."""
    device = f"{os.major(number)}:{os.minor(number)}"
    link = Path(f"/sys/dev/block/{device}")
    if (link / "partition").exists():
        return (link.resolve().parent / "dev").read_text().strip()
    return device
