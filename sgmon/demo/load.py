"""CPU time on purpose, in small measures."""

from __future__ import annotations

import os
import time


def burn(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def work(seconds: float) -> None:
    """A quarter of a core for so long: ranks of a real server burn one each."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        burn(0.02)
        time.sleep(0.06)


def idle() -> None:
    """About 5 % of a core: enough to tell an idle rank, which spins in the real server, from one in a futex."""
    burn(0.0025)
    time.sleep(0.045)


def be_nice() -> None:
    """The lowest priority from here on."""
    os.nice(19 - os.nice(0))
