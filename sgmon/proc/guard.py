"""A call that may never return (a file on a hung mount), run where it can be left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class HungError(Exception):
    """The call has not returned within its deadline; its thread is left to wait alone."""


class _Call(Generic[T]):
    """One call in one daemon thread, and what came of it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.value: T | None = None
        self.error: BaseException | None = None
        self.done = threading.Event()
        self._work = work
        threading.Thread(target=self._run, name="guarded", daemon=True).start()

    def _run(self) -> None:
        try:
            self.value = self._work()
        except (OSError, ValueError) as err:
            self.error = err
        finally:
            self.done.set()


class CallGuard(Generic[T]):
    """Runs calls by key. While one call of a key hangs no second one is started: ``HungError`` at the deadline."""

    def __init__(self) -> None:
        self._calls: dict[Hashable, _Call[T]] = {}

    def run(self, key: Hashable, work: Callable[[], T], deadline_s: float) -> T:
        """The value of ``work()``; OSError and ValueError pass through. HungError after ``deadline_s`` seconds."""
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = _Call(work)
        if not call.done.wait(deadline_s):
            raise HungError(str(key))
        del self._calls[key]
        if call.error is not None:
            raise call.error
        return call.value  # type: ignore[return-value]


class Patience:
    """Calls on one thing that may hang: each gets ``deadline_s``. While one hangs, the others have no value at once,
    so that whoever asks often (a screen) waits once. Any thread."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._hanging: _Call[object] | None = None

    def run(self, work: Callable[[], T], otherwise: T) -> T:
        """The value of ``work()``; ``otherwise`` where it fails, or has not returned in time."""
        hanging = self._hanging
        if hanging is not None and not hanging.done.is_set():
            return otherwise
        try:
            call = _Call(work)
        except RuntimeError:  # no thread can be started
            return otherwise
        if not call.done.wait(self._deadline_s):
            self._hanging = call  # type: ignore[assignment]
            return otherwise
        return otherwise if call.error is not None else call.value  # type: ignore[return-value]
