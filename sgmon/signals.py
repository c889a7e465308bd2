"""Signals that ask a command to end."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType

_OVER = 0  # no signal has this number
_LEAVE_S = 1.0


@contextlib.contextmanager
def told_of(numbers: Iterable[int], act: Callable[[int], object]) -> Iterator[None]:
    """Call ``act(number)`` for each of these signals that comes, in a thread of its own; elsewhere than in the main
    thread, which alone gets them, do nothing.

    Python runs a handler in the main thread, between any two of its steps. A handler that takes a lock, as
    ``Event.set`` and ``Queue.put`` do, waits for ever where the main thread holds it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    come, sent = os.pipe()
    os.set_blocking(sent, False)

    def handler(number: int, frame: FrameType | None = None) -> None:
        with contextlib.suppress(BlockingIOError):  # thousands wait to be read
            os.write(sent, bytes((number,)))

    def read() -> None:
        while number := os.read(come, 1)[0]:
            act(number)

    reader = threading.Thread(target=read, name="signals", daemon=True)
    reader.start()
    old = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in old.items():
            signal.signal(number, signal.SIG_DFL if previous is None else previous)
        handler(_OVER)
        reader.join(_LEAVE_S)
        if not reader.is_alive():
            os.close(come)
            os.close(sent)
