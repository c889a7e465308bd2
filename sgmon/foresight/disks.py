"""Disks of caches, logs and shared memory, and locks that a killed build has left."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.foresight.start import Start, doubt, fine
from sgmon.model.preflight import Forecast, Space
from sgmon.model.verdict import NextStep
from sgmon.units import duration, size

#: below these a start may run out: compiled kernels take up to some GiB, NCCL's and torch's segments 1 GiB
WANTED = {"shared memory": 1024**3, "caches": 2 * 1024**3, "temporary files": 256 * 1024**2, "log": 16 * 1024**2}


def spaces(start: Start) -> Iterator[Forecast]:
    """Each file system that the start writes to answers, is writable and has room."""
    for space in start.facts.spaces:
        yield _space(space)


def _space(space: Space) -> Forecast:
    kind = space.fstype or "unknown file system"
    look = NextStep("Look at it", f"df -h {space.path}")
    if space.hung:
        step = NextStep("Look whether the mount answers", f"stat -f {space.path}")
        text = f"{space.path} ({kind}) has not answered: its mount hangs or is slow"
        return doubt("mount-hung", space.what, text, step, signal="disk")
    if space.read_only:
        return doubt("read-only", space.what, f"{space.path} is mounted read-only", look, signal="disk")
    if space.free_bytes is None:
        return fine("disk", space.what, f"{space.path}: not there yet", "disk")
    if space.free_bytes < WANTED.get(space.what, 0):
        text = f"{space.path} has {size(space.free_bytes)} free"
        if space.what == "shared memory":
            look = NextStep(
                "Give it more", "docker run --shm-size 32g (or --ipc=host); Kubernetes: emptyDir medium Memory"
            )
        return doubt("disk-full", space.what, text, look, signal="disk")
    remote = f", {kind}: another machine answers for it" if space.remote else ""
    return fine("disk", space.what, f"{size(space.free_bytes)} free on {space.path}{remote}", "disk")


def stale_locks(start: Start) -> Iterator[Forecast]:
    """Locks that are there and that no live process holds. A build that waits for the file alone waits for ever
    (torch utils/file_baton.py); whether this start builds what the lock guards is not known."""
    for path, age_s in start.facts.stale_locks:
        text = f"{path} is {duration(age_s)} old and nobody holds it: a build that waits for it waits for ever"
        yield doubt("stale-lock", "build lock", text, NextStep("Remove it", f"rm {path}"), signal="disk")
