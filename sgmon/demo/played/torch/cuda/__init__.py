"""torch/cuda/__init__.py: where a rank waits for its GPU, spinning."""

from __future__ import annotations

import os
import time

from sgmon.demo.load import burn

#: ranks that really burn a core while they spin; further ones only part of it, to spare the machine
_SPINNERS = 3


def synchronize(rank: int) -> None:
    """Never returns: a peer has not entered the collective. At the lowest priority, yielding to everybody."""
    os.nice(19)
    while True:
        burn(0.05)
        if rank >= _SPINNERS:
            time.sleep(0.15)
