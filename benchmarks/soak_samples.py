"""What the soak's process holds at a moment, and how that grows."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

#: caches fill before
SETTLED_H = 4.0
MALLINFO = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks"),
    "keepcost",
)


class Sample(NamedTuple):
    """What the process held at ``hours`` of the watch."""

    hours: float
    rss_mib: float
    blocks: int  # memory blocks that Python has allocated
    heap_mib: float  # in use in the heap of C, where Python puts what is larger than 512 bytes
    traced_mib: float | None
    fds: int
    threads: int
    widgets: int
    screens: int
    types: bytes  # objects that the garbage collector tracks, by type; see ``packed``
    caches: bytes  # entries of each lru_cache


def taken(hours: float, screens: int) -> Sample:
    """A sample of this process, garbage collected before."""
    from textual.widget import Widget

    gc.collect()
    with open("/proc/self/statm", "rb") as statm:
        pages = int(statm.read().split()[1])
    objects = gc.get_objects()
    return Sample(
        hours,
        pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        sys.getallocatedblocks(),
        heap_bytes() / 2**20,
        tracemalloc.get_traced_memory()[0] / 2**20 if tracemalloc.is_tracing() else None,
        len(os.listdir("/proc/self/fd")),
        len(os.listdir("/proc/self/task")),
        sum(isinstance(one, Widget) for one in objects),
        screens,
        packed(Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in objects)),
        packed(
            {f"{one.__module__}.{one.__qualname__}": one.cache_info().currsize for one in objects if _is_cache(one)}
        ),
    )


class MallInfo(ctypes.Structure):
    """``struct mallinfo2`` of glibc (mallinfo(3)): uordblks is in use, hblkhd was mapped for single large pieces."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in MALLINFO)


def heap_bytes() -> int:
    """Bytes in use in the heap of C, over all threads. Raises AttributeError without glibc 2.33 or newer."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = MallInfo
    info = mallinfo2()
    return int(info.uordblks + info.hblkhd)


def packed(numbers: dict[str, int]) -> bytes:
    """The numbers in few bytes: samples of a day must not be what grows."""
    return zlib.compress(msgspec.json.encode(numbers))


def unpacked(numbers: bytes) -> Counter[str]:
    """What ``packed`` was given."""
    return Counter(msgspec.json.decode(zlib.decompress(numbers), type=dict[str, int]))


def _is_cache(one: object) -> bool:
    return type(one).__name__ == "_lru_cache_wrapper"


def slope(samples: Sequence[Sample], field: str) -> float:
    """Growth of the field an hour of the watch, by least squares over the settled samples."""
    points = [(one.hours, float(getattr(one, field))) for one in settled(samples)]
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def settled(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Those after ``SETTLED_H``, or after the first quarter of a shorter watch."""
    begin = min(SETTLED_H, samples[-1].hours / 4)
    return [one for one in samples if one.hours >= begin]
