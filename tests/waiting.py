"""Waiting for what comes by itself, with a deadline."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TypeVar

_Value = TypeVar("_Value")


def eventually(
    condition: Callable[[], _Value], timeout_s: float = 100.0, seen: Callable[[], object] = lambda: ""
) -> _Value:
    """The first true value of ``condition``; an AssertionError that says what was ``seen`` when the time is over."""
    end = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < end, f"still not true after {timeout_s:g} s {seen()}"
        time.sleep(0.05)
    return value


def free_port() -> int:
    """A TCP port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
