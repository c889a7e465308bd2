"""A read that may be refused: its value, or None and the reason kept."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TypeVar

from sgmon.model import Missing
from sgmon.proc import files
from sgmon.proc.guard import HungError

T = TypeVar("T")


class Gaps:
    """What could not be read of one process, by signal; a later success takes the gap away."""

    def __init__(self, root: str, pid: int) -> None:
        self._root = root
        self._pid = pid
        self._found: dict[str, Missing] = {}

    def read(self, signal: str, work: Callable[[], T]) -> T | None:
        """``work()``, or None. A process that has just ended leaves no gap: the next look at its stat tells."""
        try:
            value = work()
        except HungError:
            why = "its memory map is locked: one of its threads hangs in the kernel"
            self.put(Missing(signal, why, "is a network file system hung? Look at its threads in state D"))
            return None
        except OSError as err:
            if not files.is_gone(err):
                self.put(files.missing(signal, err, self._root))
            elif err.errno == errno.ENOENT and os.path.isdir(f"{self._root}/{self._pid}"):
                self.put(Missing(signal, "this kernel does not tell it"))
            return None
        self._found.pop(signal, None)
        return value

    def put(self, gap: Missing) -> None:
        self._found[gap.signal] = gap

    def clear(self, signal: str) -> None:
        self._found.pop(signal, None)

    def all(self) -> tuple[Missing, ...]:
        return tuple(self._found.values())
