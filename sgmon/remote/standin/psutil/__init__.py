"""What a collector uses of psutil: memory of the machine, and which network interfaces are up."""

from __future__ import annotations

import fcntl
import socket
import struct
from typing import NamedTuple

_GET_FLAGS = 0x8913  # SIOCGIFFLAGS
_RUNNING = 0x40  # IFF_RUNNING


class Memory(NamedTuple):
    total: int
    available: int


class Swap(NamedTuple):
    total: int


class Interface(NamedTuple):
    isup: bool


def virtual_memory() -> Memory:
    """Bytes. A kernel older than 3.14 does not say what is available: free memory counts."""
    found = _meminfo()
    return Memory(found.get("MemTotal", 0), found.get("MemAvailable", found.get("MemFree", 0)))


def swap_memory() -> Swap:
    """Bytes."""
    return Swap(_meminfo().get("SwapTotal", 0))


def net_if_stats() -> dict[str, Interface]:
    """Name -> whether it is up, by its flags."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        return {name: Interface(_is_up(asked, name)) for _, name in socket.if_nameindex()}


def _is_up(asked: socket.socket, name: str) -> bool:
    try:
        answer = fcntl.ioctl(asked.fileno(), _GET_FLAGS, struct.pack("16sH22x", name.encode()[:15], 0))
    except OSError:
        return False
    flags: int = struct.unpack("16sH22x", answer)[1]
    return bool(flags & _RUNNING)


def _meminfo() -> dict[str, int]:
    found = {}
    with open("/proc/meminfo", encoding="ascii", errors="replace") as lines:
        for line in lines:
            words = line.split()
            if len(words) >= 2 and words[1].isdigit():
                found[words[0].rstrip(":")] = int(words[1]) * 1024
    return found
