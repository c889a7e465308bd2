"""A call made inside another network namespace, where a container's 127.0.0.1 is."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
_CLONE_NEWNET = 0x40000000


class InNamespace(Generic[T]):
    """``work()`` in a thread that has joined the namespace and ends afterwards; no other thread is touched."""

    def __init__(self, namespace: str, work: Callable[[], T]) -> None:
        self._namespace = namespace
        self._work = work
        self._value: T | None = None
        self._error: OSError | None = None

    def run(self) -> T:
        """OSError when the namespace cannot be joined: setns(2) needs CAP_SYS_ADMIN."""
        thread = threading.Thread(target=self._run, name="netns", daemon=True)
        thread.start()
        thread.join()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def _run(self) -> None:
        try:
            _join(self._namespace)
        except OSError as err:
            self._error = err
            return
        self._value = self._work()


def _join(namespace: str) -> None:
    fd = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        import ctypes

        if ctypes.CDLL(None, use_errno=True).setns(fd, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(fd)
