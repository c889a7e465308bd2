"""What the kernel's log says of killed and faulting processes, from the begin of the watch on."""

from __future__ import annotations

import os

from sgmon.collect.probes.base import Watched
from sgmon.model import KernelReading, Missing
from sgmon.proc import kmsg

_REMEDY = "run sgmon with sudo, or look yourself: sudo dmesg -T | grep -iE 'killed process|segfault'"


class KernelLogProbe:
    """Reads /dev/kmsg. Says once why it cannot, and is silent from then on."""

    name = "kernel"
    kind = "kernel"
    deadline_s = 5.0

    def __init__(self, watched: Watched) -> None:
        self.interval_s = max(1.0, watched.settings.interval_s)
        self._live = watched.settings.proc_root.rstrip("/") in ("", "/proc")
        self._fd: int | None = None
        self._refused = False

    def read(self) -> KernelReading | None:
        if not self._live or self._refused:
            return None
        try:
            if self._fd is None:
                self._fd = kmsg.open_at_end()
                return KernelReading()
            lines = kmsg.new_lines(self._fd)
        except OSError as err:
            self._refused = True
            self.close()
            why = f"/dev/kmsg cannot be read: {(err.strerror or str(err)).lower()}"
            return KernelReading(missing=(Missing("kernel log", why, _REMEDY),))
        return KernelReading(lines) if lines else None

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
