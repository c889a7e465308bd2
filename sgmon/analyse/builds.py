"""Whether a start builds its kernels and graphs, or finds them in the caches of an earlier one. Pure."""

from __future__ import annotations

from sgmon.model import Snapshot

#: CPU seconds of compilers below the ranks that make a build: each start compiles a stub or two
BUILD_CPU_S = 3.0
BUILT = "kernels built"


def builds(snapshot: Snapshot) -> bool:
    """Whether it has built something, or, before it is ready, has no cache to take anything from.

    Seen are compilers below its processes, lines of a build, lines of a load from a cache (fields ``built`` and
    ``cached`` of milestones), and the number of files in the caches when the start was first seen.
    """
    if sum(clock.build_s for clock in snapshot.clocks) >= BUILD_CPU_S or _said(snapshot, "built"):
        return True
    if snapshot.has_been_ready or snapshot.verdict.state == "ready" or _said(snapshot, "cached"):
        return False
    return snapshot.start is not None and snapshot.start.cache_files == 0


def _said(snapshot: Snapshot, field: str) -> bool:
    return any(name == field for milestone in snapshot.log.milestones for name, _ in milestone.fields)
