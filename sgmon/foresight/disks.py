"""Disks of caches, logs and shared memory, and locks that a killed build has left."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.foresight.start import Start, doomed, doubt, fine
from sgmon.model.preflight import Forecast, Space
from sgmon.model.verdict import NextStep
from sgmon.text import quoted
from sgmon.units import duration, size

#: below these a start may run out: compiled kernels take up to some GiB, NCCL's and torch's segments 1 GiB
WANTED = {"shared memory": 1024**3, "caches": 2 * 1024**3, "temporary files": 256 * 1024**2, "log": 16 * 1024**2}
#: a file system that takes fewer more files than this is as good as full
FILES = 1000
#: free space is told in steps of this from here on
STEP, STEPPED = 1024**2, 64 * 1024**2
MORE_SHARED_MEMORY = NextStep(
    "Give it more", "docker run --shm-size 32g (or --ipc=host); Kubernetes: emptyDir medium Memory"
)


def spaces(start: Start) -> Iterator[Forecast]:
    """Each file system that the start writes to answers, is writable and has room."""
    for space in start.facts.spaces:
        yield _space(space)


def _space(space: Space) -> Forecast:
    kind = space.fstype or "unknown file system"
    look = NextStep("Look at it", f"df -h {quoted(space.path)}")
    if space.hung:
        step = NextStep("Look whether the mount answers", f"stat -f {quoted(space.path)}")
        text = f"{space.path} ({kind}) has not answered: its mount hangs or is slow"
        return doubt("mount-hung", space.what, text, step, signal="disk")
    if space.read_only:
        return doubt("read-only", space.what, f"{space.path} is mounted read-only", look, signal="disk")
    if space.free_bytes is None:
        return fine("disk", space.what, f"{space.path}: not there yet", "disk")
    if space.free_files is not None and space.free_files < FILES:
        return doubt(
            "disk-files", space.what, f"{space.path} takes {space.free_files} more files", look, signal="disk"
        )
    if space.quota_bytes is not None and space.quota_bytes < WANTED.get(space.what, 0):
        step = NextStep("Look at the quota", "quota -s")
        text = f"the user's quota leaves {size(space.quota_bytes)} on {space.path}"
        return doubt("disk-quota", space.what, text, step, signal="disk")
    if space.free_bytes < WANTED.get(space.what, 0):
        text = f"{space.path} has {size(space.free_bytes)} free"
        if space.what == "shared memory":
            look = MORE_SHARED_MEMORY
        return doubt("disk-full", space.what, text, look, signal="disk")
    if space.remote and space.what == "caches":
        text = f"{space.path} is on {kind}, another machine's: build locks and many small files are slow there"
        return doubt("disk-remote", space.what, text, NextStep("Put build caches on a local disk"), signal="disk")
    remote = f", {kind}: another machine answers for it" if space.remote else ""
    return fine("disk", space.what, f"{size(space.free_bytes)} free on {space.path}{remote}", "disk")


def shared_memory(start: Start) -> Iterator[Forecast]:
    """/dev/shm has room for what this version takes of it for sure."""
    wanted = start.family.start.shared_memory(start.args, start.facts.variable)
    space = next((one for one in start.facts.spaces if one.what == "shared memory"), None)
    if wanted is None or space is None or space.free_bytes is None:
        return
    if wanted.proof not in start.facts.installed.proofs or start.facts.missing:
        return  # without the environment it is not known what the start takes
    need, free = wanted.size_bytes, space.free_bytes + space.new_bytes  # its own may be among the new ones
    if free + (STEP if free >= STEPPED else 0) >= need:
        yield fine("shared-memory", "shared memory", f"{size(need)} wanted, {size(free)} free", "disk")
        return
    text = f"{space.path} has {size(free)} free, {wanted.taker} takes {size(need)}"
    phase = start.phase("ranks")
    yield doomed("shared-memory", "shared memory", text, wanted.why, phase, MORE_SHARED_MEMORY, signal="disk")


def stale_locks(start: Start) -> Iterator[Forecast]:
    """Locks that are there and that no live process holds. A build that waits for the file alone waits for ever
    (torch utils/file_baton.py); whether this start builds what the lock guards is not known."""
    for path, age_s in start.facts.stale_locks:
        text = f"{path} is {duration(age_s)} old and nobody holds it: a build that waits for it waits for ever"
        yield doubt("stale-lock", "build lock", text, NextStep("Remove it", f"rm {quoted(path)}"), signal="disk")
