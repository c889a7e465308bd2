"""What surrounds a start and explains its speed: environment, mount, page cache."""

from __future__ import annotations

from msgspec import Struct

from sgmon.model.verdict import Missing


class StartReading(Struct, frozen=True):
    """Read once a server, when it is first seen. env: the launcher's settings that matter, secrets masked.

    cached: share (0..1) of the model's files that were in the page cache then; None: not known. cache_files: files in
    the caches of compiled kernels then, counted up to a limit; None: not known.
    """

    pid: int
    host: str = ""
    env: tuple[tuple[str, str], ...] = ()
    mount: str = ""  # file system of the model's folder: "ext4", "nfs4"
    cached: float | None = None
    cache_files: int | None = None
    missing: tuple[Missing, ...] = ()
