"""Where the ranks write what their simulated GPU holds and does; the guard reads it. One slot a rank."""

from __future__ import annotations

import struct
from pathlib import Path

from msgspec import Struct

from sgmon.demo.mapping import Mapping

_STATE = struct.Struct("<III")  # pid, mode, shards: written by the rank
_ACTED = struct.Struct("<I")  # written by the guard
_USED = struct.Struct("<Q")
_ACTED_AT, _USED_AT, _SLOT_BYTES = 12, 16, 32

#: what a GPU is doing, in the order of the number in the slot
MODES = ("off", "idle", "load", "work", "spin")


class Slot(Struct, frozen=True):
    """pid 0: not born yet. acted: the guard has sent the signal that the scenario asks for."""

    pid: int = 0
    mode: str = "off"
    shards: int = 0
    used_bytes: int = 0
    acted: bool = False


class Blackboard:
    """Slots of all local ranks in one small shared file."""

    def __init__(self, path: str) -> None:
        self._map = Mapping(path, writable=True)

    @staticmethod
    def create(path: str, ranks: int) -> None:
        Path(path).write_bytes(bytes(_SLOT_BYTES * ranks))

    def read(self, rank: int) -> Slot:
        at, view = rank * _SLOT_BYTES, self._map.view
        pid, mode, shards = _STATE.unpack_from(view, at)
        (acted,) = _ACTED.unpack_from(view, at + _ACTED_AT)
        (used,) = _USED.unpack_from(view, at + _USED_AT)
        return Slot(pid, MODES[mode], shards, used, bool(acted))

    def write(self, rank: int, slot: Slot) -> None:
        """By the rank; leaves ``acted`` alone."""
        at, view = rank * _SLOT_BYTES, self._map.view
        _STATE.pack_into(view, at, slot.pid, MODES.index(slot.mode), slot.shards)
        _USED.pack_into(view, at + _USED_AT, slot.used_bytes)

    def mark_acted(self, rank: int) -> None:
        """By the guard."""
        _ACTED.pack_into(self._map.view, rank * _SLOT_BYTES + _ACTED_AT, 1)
