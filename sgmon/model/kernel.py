"""What the kernel's own log said of processes while we watched."""

from __future__ import annotations

from msgspec import Struct

from sgmon.model.verdict import Missing


class KernelLine(Struct, frozen=True):
    """One record about a process. what: "oom" (killed by the OOM killer) | "fault" (segfault, trap). pid: of the
    kernel's own pid namespace."""

    what: str
    pid: int
    text: str


class KernelReading(Struct, frozen=True):
    """New records of /dev/kmsg; ``missing`` says why there can be none."""

    lines: tuple[KernelLine, ...] = ()
    missing: tuple[Missing, ...] = ()
