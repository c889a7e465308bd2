"""The simulated GPU of one rank: what it holds and what it does, told to the guard over the blackboard.

Levels as seen on an H200: 0.51 GiB for a context, the whole model in one step when it is built (nothing
moves while the weights are read), the KV cache in one step, then a creep during graph capture.
"""

from __future__ import annotations

import os

from sgmon.demo.blackboard import Blackboard, Slot

GIB = 1 << 30
#: what an H200 offers: NVML total without the driver's reserve
CAPACITY_GIB = 139.80
CONTEXT_GIB = 0.51
#: after NCCL is up
DIST_GIB = 1.49


class Card:
    """One rank's slot."""

    def __init__(self, board_path: str, rank: int) -> None:
        self.rank = rank
        self._board = Blackboard(board_path)
        self._used_gib = 0.0
        self._shards = 0
        self._mode = "off"
        self._write()

    @property
    def free_gib(self) -> float:
        return CAPACITY_GIB - self._used_gib

    @property
    def acted(self) -> bool:
        """Has the guard sent the signal that the scenario asks for?"""
        return self._board.read(self.rank).acted

    def open_context(self) -> None:
        self.hold(CONTEXT_GIB, "idle")

    def hold(self, used_gib: float, mode: str) -> None:
        self._used_gib, self._mode = used_gib, mode
        self._write()

    def grow(self, gib: float, mode: str | None = None) -> None:
        self.hold(self._used_gib + gib, mode or self._mode)

    def mode(self, mode: str) -> None:
        self.hold(self._used_gib, mode)

    def loaded(self, shards: int) -> None:
        self._shards = shards
        self._write()

    def _write(self) -> None:
        used = int(self._used_gib * GIB)
        self._board.write(self.rank, Slot(os.getpid(), self._mode, self._shards, used))
