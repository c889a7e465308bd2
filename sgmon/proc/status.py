"""/proc/PID/status: resident memory by kind, owner, tracer, pid namespaces. World-readable."""

from __future__ import annotations

import re
from typing import NamedTuple

from sgmon.patterns import regex
from sgmon.proc import files

_LINES = regex(rb"^(RssAnon|RssFile|RssShmem|TracerPid|Uid|NSpid):(.*)$", re.MULTILINE)


class Status(NamedTuple):
    """Sizes in bytes; None where the kernel does not print the line (zombies have no memory)."""

    rss_anon_bytes: int | None = None
    rss_file_bytes: int | None = None
    rss_shmem_bytes: int | None = None
    tracer_pid: int | None = None
    uid: int | None = None  # effective
    ns_pids: tuple[int, ...] = ()  # ours first, the process's own last


def parse(data: bytes) -> Status:
    """Only the lines that sgmon uses; a line it cannot read counts as absent."""
    found = dict(_LINES.findall(data))
    uids = found.get(b"Uid", b"").split()
    return Status(
        rss_anon_bytes=_kib(found.get(b"RssAnon")),
        rss_file_bytes=_kib(found.get(b"RssFile")),
        rss_shmem_bytes=_kib(found.get(b"RssShmem")),
        tracer_pid=_number(found.get(b"TracerPid")),
        uid=_number(uids[1]) if len(uids) > 1 else None,
        ns_pids=tuple(int(x) for x in found.get(b"NSpid", b"").split() if x.isdigit()),
    )


def read(root: str, pid: int) -> Status:
    return parse(files.small(f"{root}/{pid}/status"))


def _kib(value: bytes | None) -> int | None:
    number = _number(value.split()[0]) if value and value.split() else None
    return None if number is None else number * 1024


def _number(value: bytes | None) -> int | None:
    try:
        return int(value) if value is not None else None
    except ValueError:
        return None
