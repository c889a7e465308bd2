"""/proc/PID/maps: the weight files a process maps now.

The loader of SGLang mmaps safetensors and closes the descriptor at once, so a shard being read shows here and not
in /proc/PID/fd (seen with 0.5.17 and 0.5.23).
"""

from __future__ import annotations

import re

from sgmon.model import Shards
from sgmon.patterns import regex
from sgmon.proc import files, mounts
from sgmon.text import without_suffix

_SHARD = regex(rb"(?:\.safetensors|\.gguf|pytorch_model[^/]*\.bin|consolidated[^/]*\.pth)(?: \(deleted\))?$")
_HINT = regex(rb"\.safetensors|\.gguf|pytorch_model|consolidated")
_PACKAGES = regex(rb"^(/.*?/(?:site|dist)-packages)/", re.DOTALL)


def shards(data: bytes, rows: tuple[mounts.Mount, ...] = ()) -> Shards | None:
    """Weight files in ``data`` (the text of maps), bytes summed over their mappings; None when there are none."""
    if not _HINT.search(data):
        return None
    sizes: dict[bytes, int] = {}
    for line in data.splitlines():
        if not _SHARD.search(line):
            continue
        parts = line.split(None, 5)
        if len(parts) < 6:
            continue
        low, _, high = parts[0].partition(b"-")
        path = without_suffix(parts[5], b" (deleted)")
        sizes[path] = sizes.get(path, 0) + int(high, 16) - int(low, 16)
    if not sizes:
        return None
    first = next(iter(sizes)).decode("utf-8", "replace")
    mount = mounts.of_path(rows, first)
    names = sorted(path.rsplit(b"/", 1)[-1].decode("utf-8", "replace") for path in sizes)
    return Shards(
        names=tuple(names),
        mapped_bytes=sum(sizes.values()),
        mount=mount.point if mount else "",
        fstype=mount.fstype if mount else "",
    )


def read(root: str, pid: int) -> bytes:
    """The text of maps. Needs PTRACE_MODE_READ; about 0.5 ms for a process that has loaded torch."""
    return files.read(f"{root}/{pid}/maps")


def site_packages(data: bytes) -> tuple[str, ...]:
    """The package directories that the mapped extension modules come from, in order of appearance."""
    found: dict[str, None] = {}
    for line in data.splitlines():
        parts = line.split(None, 5)
        match = _PACKAGES.match(parts[5]) if len(parts) == 6 else None
        if match:
            found.setdefault(match[1].decode("utf-8", "replace"))
    return tuple(found)
