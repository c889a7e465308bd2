"""filelock's lock, as far as it shows in a stack dump and in /proc/locks: flock, tried every 50 ms."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType


class BaseFileLock:
    """Held from entry to exit."""

    def __init__(self, path: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def __enter__(self) -> BaseFileLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def acquire(self) -> None:
        self._poll_until_acquired()

    def _poll_until_acquired(self) -> None:
        while not self._acquire():
            time.sleep(0.05)

    def _acquire(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
