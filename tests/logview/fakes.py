"""A small stand-in for the description of lines, and logs to show."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path

from sgmon.analyse.log.index import LogIndex
from sgmon.model import LogLine, LogReading, LogState, RankProgress, Snapshot
from sgmon.text import clean

_PREFIX = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) ?((?:[A-Z]+\d+ ?)*)\] ?")


def describe(number: int, text: str) -> LogLine:
    """Kinds by plain words."""
    text = clean(text, 4000)
    found = _PREFIX.match(text)
    t = datetime.fromisoformat(found[1]).replace(tzinfo=timezone.utc).timestamp() if found else None
    body = text[found.end() :] if found else text
    kind = ""
    if "HTTP/1.1" in body:
        kind = "access"
    elif body.startswith("known noise"):
        kind = "noise"
    elif "Error" in body:
        kind = "error"
    elif "Warning" in body:
        kind = "warning"
    elif body.startswith(("Load weight", "KV Cache", "Init torch")):
        kind = "milestone"
    elif "%|" in body:
        kind = "bar"
    return LogLine(number, text, found[2].strip() if found else "", t, "", kind, "m" if kind == "milestone" else "")


def dated(second: int, text: str, rank: str = "") -> str:
    """A line as SGLang writes it, ``second`` seconds into the start."""
    clock = datetime.fromtimestamp(1_800_000_000 + second, timezone.utc)
    return f"[{clock:%Y-%m-%d %H:%M:%S}{' ' + rank if rank else ''}] {text}\n"


def index_of(path: Path, *, live: bool = True) -> LogIndex:
    index = LogIndex(describe, live=live)
    index.follow(reading(path))
    return index


def reading(path: Path, change: str = "", kind: str = "file") -> LogReading:
    """What the log probe says about this file now."""
    status = path.stat()
    return LogReading(
        path=str(path),
        identity=f"{status.st_dev}:{status.st_ino}",
        size=status.st_size,
        kind=kind,
        change=change,
        writer_offset=status.st_size,
    )


def settle(index: LogIndex) -> None:
    """Wait until every line end is counted."""
    import time

    deadline = time.monotonic() + 20
    while index.indexed < index.size:
        assert time.monotonic() < deadline, "the index does not get on"
        time.sleep(0.002)


def snapshot(t: float = 1.0, ranks: int = 0, last_byte_t: float | None = 0.0, path: str = "server.log") -> Snapshot:
    """A snapshot with so many ranks seen in the log."""
    progress = tuple(RankProgress(f"TP{i}", "load_begin", 1) for i in range(ranks))
    return Snapshot(t=t, log=LogState(path=path, kind="file", last_byte_t=last_byte_t, ranks=progress))
