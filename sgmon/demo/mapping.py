"""Memory maps without a descriptor: safetensors closes its file after mmap, Python's mmap module does not.

A shard must show in /proc/PID/maps and not in /proc/PID/fd, as on a real server.
"""

from __future__ import annotations

import ctypes
import os
import time

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

PAGE = 4096
_PROT_READ, _PROT_WRITE = 1, 2
_MAP_SHARED = 1
_MADV_RANDOM = 1


class Mapping:
    """A file mapped shared; its descriptor is closed at once."""

    def __init__(self, path: str, *, writable: bool = False, random: bool = False) -> None:
        fd = os.open(path, os.O_RDWR if writable else os.O_RDONLY)
        try:
            self.size = os.fstat(fd).st_size
            protection = _PROT_READ | (_PROT_WRITE if writable else 0)
            address = _libc.mmap(None, self.size, protection, _MAP_SHARED, fd, 0)
        finally:
            os.close(fd)
        if address is None or address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "mmap failed", path)
        self._address: int = address
        if random:
            _libc.madvise(address, self.size, _MADV_RANDOM)
        self.view = memoryview((ctypes.c_char * self.size).from_address(address)).cast("B")

    def close(self) -> None:
        self.view.release()
        _libc.munmap(self._address, self.size)


def read_slowly(path: str, takes_s: float, *, random: bool = False) -> Mapping:
    """Map a shard and touch all of its pages, spread over the time that it is to take."""
    shard = Mapping(path, random=random)
    pages = shard.size // PAGE
    steps = max(1, min(pages, int(takes_s / 0.1)))
    for step in range(steps):
        for page in range(step * pages // steps, (step + 1) * pages // steps):
            shard.view[page * PAGE]
        time.sleep(takes_s / steps)
    return shard
