"""Raw records of real starts, of any family: rows of JSON, and what both converters make of them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sgmon.model import BlockedCall, Event, LogReading
from sgmon.recording.writer import Recorder

Row = dict[str, Any]
TICKS = 100.0
ANSWERS = {"ConnectionRefusedError": "refused", "ConnectionResetError": "reset", "TimeoutError": "no_response"}
CALLS = {0: "read", 1: "write", 7: "poll", 35: "nanosleep", 42: "connect", 45: "recvfrom", 61: "wait4"}
CALLS |= {73: "flock", 202: "futex", 230: "clock_nanosleep", 232: "epoll_wait", 271: "ppoll", 281: "epoll_pwait"}
#: where the servers lived is nobody's business
_PLACE = re.compile(r"/opt/(?:sglang)\b")


def neutral(text: str) -> str:
    return _PLACE.sub("/srv/sglang", text)


def lines(path: Path) -> Iterator[Row]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        for line in file:
            yield json.loads(neutral(line))


def argv_of(command: str) -> tuple[str, ...]:
    """The raw records joined the arguments: what follows -c was one."""
    head, dash, code = command.partition(" -c ")
    return (*head.split(), "-c", code) if dash else tuple(command.split())


def call_of(text: str) -> BlockedCall | None:
    """Of a line of /proc/PID/syscall."""
    number = text.split(" ", 1)[0]
    if not number.lstrip("-").isdigit():
        return None
    words = text.split()
    name = CALLS.get(int(number), "")
    wait = int(words[3], 16) if name == "poll" and len(words) > 3 else None
    return BlockedCall(int(number), name, timeout_ms=wait if wait is not None and wait < 1 << 31 else None)


def log_events(pieces: Iterable[tuple[float, str]], path: str) -> Iterator[Event]:
    """Readings of a log from (second, text with its end of line): what came within 0.2 s is one."""
    offset, text, begun = 0, "", None
    for t, piece in pieces:
        if begun is not None and t - begun >= 0.2:
            yield _log_event(path, begun, offset, text)
            offset, text, begun = offset + len(text.encode()), "", None
        begun = t if begun is None else begun
        text += piece
    if begun is not None:
        yield _log_event(path, begun, offset, text)


def _log_event(path: str, t: float, offset: int, text: str) -> Event:
    size, change = offset + len(text.encode()), "" if offset else "appeared"
    return Event(round(t, 2), "log", LogReading(path, "8:1", offset, text, size, "file", change))


def record(target: Path, epoch: float, note: str, events: Sequence[Event]) -> int:
    """Write a recording; returns the number of its events."""
    recorder = Recorder(target, epoch, note=note)
    for event in events:
        recorder.write(event)
    recorder.close()
    return len(events)
