"""The recording: one JSON object a line, gzipped. A versioned header first, then events.

A reading equal to the last of its kind is written as "same"; of several nodes, each has its own, named by "n".
Unknown kinds and fields are skipped on load, missing ones take their defaults, so that old and new files both open. A
torn last line (the recorder was killed) is no error: ``Ending`` says that there is one. ``sgmon.recording.writer``
writes them.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sgmon import __version__
from sgmon.json_text import as_json
from sgmon.model import KINDS, Event, LogReading, Reading
from sgmon.patterns import regex
from sgmon.recording.log_mask import LogMask

FORMAT = 1
#: kind -> what a reading of it said before -> what it says now
_RENAMED = {
    "port": ((b'"answer":"mute"', b'"answer":"no_response"'),),
    "ras": (
        (b'"answer":"mute"', b'"answer":"no_response"'),
        (b'"mute_connections":', b'"unanswered_connections":'),
    ),
}
#: At a longer line the recording ends: the longest that a recorder writes is a reading of some MB of log.
LINE_BYTES = 32 << 20
#: So much is unpacked at once: gzip makes a thousand times as much of its input.
_CHUNK = 1 << 18
#: times beyond these are no times of a watch: ten years; wall clocks from 1970 to 2200
_LONGEST_S, _LAST_EPOCH = 3.2e8, 7.3e9
_TIME = regex(rb'\{"t":([0-9.]+),')


class RecordingError(Exception):
    """A recording that cannot be opened: words for people."""


class Ending:
    """How a recording ends, known when it was read to its end. is_cut: in the middle of a line or a gzip member."""

    def __init__(self) -> None:
        self.is_cut = False


#: what is said of a recording that is cut
CUT = "ends in the middle: the file is cut, or sgmon was killed while it recorded; what is readable was read"


class Header(Struct, frozen=True):
    """First line of a recording. epoch: wall clock at t = 0. ticks: the watch's own are in it, none are made up."""

    sgmon_recording: int = FORMAT
    sgmon: str = __version__
    epoch: float = 0.0
    host: str = ""
    note: str = ""
    ticks: bool = False


class Encoded(NamedTuple):
    """An event and its bytes, made once for all that keep it. head: the beginning of its line, an open JSON object.
    body: its reading; None for a tick."""

    event: Event
    head: bytes
    body: bytes | None


class Encoder:
    """Event -> bytes. Secrets in log text are masked."""

    def __init__(self) -> None:
        self._masks: dict[tuple[str, str], LogMask] = {}  # by node and path of the log

    def encode(self, event: Event) -> Encoded | None:
        """None for what is not recorded. Ticks are: verdicts are drawn at them."""
        if event.kind != "tick" and (event.reading is None or event.kind not in KINDS):
            return None
        head: dict[str, Any] = {"t": round(event.t, 3), "k": event.kind}
        if event.node:
            head["n"] = event.node
        if event.kind == "tick":
            return Encoded(event, msgspec.json.encode(head)[:-1], None)
        if event.took_s is not None:
            head["took"] = round(event.took_s, 4)
        reading = event.reading
        if isinstance(reading, LogReading) and reading.text:
            mask_of = self._masks.setdefault((event.node, reading.path), LogMask())
            reading = replace(reading, text=mask_of.masked(reading.text, fresh=bool(reading.change)))
        return Encoded(event, msgspec.json.encode(head)[:-1], as_json(reading))


class Lines:
    """The lines of one stream: a reading equal to the last of its node and kind becomes "same"."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], bytes] = {}

    def line(self, encoded: Encoded) -> bytes:
        """Without its newline."""
        event, head, body = encoded
        if body is None:
            return head + b"}"
        key = event.node, event.kind
        if event.kind != "log" and self._last.get(key) == body:
            return head + b',"same":1}'
        self._last[key] = body
        return head + b',"r":' + body + b"}"


class Decoder:
    """Line -> event. Returns None for a line that this version does not know."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Reading] = {}

    def decode(self, line: bytes) -> Event | None:
        head = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        kind = msgspec.json.decode(head["k"], type=str)
        node = msgspec.json.decode(head["n"], type=str) if "n" in head else ""
        if kind == "tick":
            return Event(msgspec.json.decode(head["t"], type=float), "tick", node=node)
        reading_type = KINDS.get(kind)
        if reading_type is None:
            return None
        if "r" in head:
            reading: Reading = msgspec.json.decode(_renamed(kind, head["r"]), type=reading_type)
            self._last[node, kind] = reading
        elif (node, kind) in self._last:
            reading = self._last[node, kind]
        else:
            return None
        took = msgspec.json.decode(head["took"], type=float) if "took" in head else None
        return Event(msgspec.json.decode(head["t"], type=float), kind, reading, took, node)


def _renamed(kind: str, body: msgspec.Raw) -> msgspec.Raw | bytes:
    """The reading in the words of today."""
    if kind not in _RENAMED:
        return body
    text = bytes(body)
    for before, now in _RENAMED[kind]:
        text = text.replace(before, now)
    return text


def length_s(path: Path, ending: Ending | None = None) -> float:
    """The time of the last event, without building any reading."""
    last = 0.0
    for line in _lines(path, ending):
        match = _TIME.match(line)
        if match:
            last = max(last, float(match[1]))
    return last


def read_header(path: Path) -> Header:
    """The header alone. Raises ``RecordingError`` with words when this is no recording."""
    for line in _lines(path):
        return _header(path, line)
    raise RecordingError(f"{path} is empty: not a recording")


def read(path: Path, ending: Ending | None = None) -> tuple[Header, Iterator[Event]]:
    """Header and events of a recording, in file order; a torn or foreign line at the end is left out."""
    lines = _lines(path, ending)
    first = next(lines, None)
    if first is None:
        raise RecordingError(f"{path} is empty: not a recording")
    return _header(path, first), _events(lines)


def header_of(data: bytes) -> Header:
    """The header of a recording that is in memory."""
    for line in _split(data):
        return _header(Path("the recording"), line)
    raise RecordingError("the recording is empty")


def events_of(data: bytes) -> Iterator[Event]:
    """The events of a recording that is in memory."""
    lines = _split(data)
    next(lines, None)
    return _events(lines)


def _events(lines: Iterator[bytes]) -> Iterator[Event]:
    decoder = Decoder()
    for line in lines:
        try:
            event = decoder.decode(line)
        except (msgspec.MsgspecError, KeyError, RecursionError, UnicodeDecodeError):
            continue  # a torn line, one of a newer version whose types changed, or one that was made to break this
        if event is not None and 0.0 <= event.t <= _LONGEST_S:
            yield event


_NO_HEADER = "is not an sgmon recording (its first line is no header). A log is read by: sgmon log FILE"


def _header(path: Path, line: bytes) -> Header:
    try:
        header = msgspec.json.decode(line, type=Header)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as err:
        raise RecordingError(f"{path} {_NO_HEADER}") from err
    if b"sgmon_recording" not in line or not 0.0 <= header.epoch <= _LAST_EPOCH:
        raise RecordingError(f"{path} {_NO_HEADER}")
    return header


def _lines(path: Path, ending: Ending | None = None) -> Iterator[bytes]:
    try:
        raw = open(path, "rb")
    except OSError as err:
        raise RecordingError(f"cannot open {path}: {err.strerror}. Check the path") from err
    with raw:
        yield from _cut(raw, ending or Ending())


def _split(data: bytes) -> Iterator[bytes]:
    yield from _cut(io.BufferedReader(io.BytesIO(data)), Ending())


def _cut(raw: io.BufferedReader, ending: Ending) -> Iterator[bytes]:
    start = raw.peek(2)[:2]
    chunks = _gunzip(raw, ending) if start == b"\x1f\x8b" else iter(lambda: raw.read(_CHUNK), b"")
    parts: list[bytes] = []  # of the line that has not ended
    size = 0
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        parts.append(first)
        size += len(first)
        for line in others:
            if whole := b"".join(parts):
                yield whole
            parts, size = [line], len(line)
        if size > LINE_BYTES:
            ending.is_cut = True
            return
    if whole := b"".join(parts):
        ending.is_cut = True
        yield whole


def _gunzip(raw: io.BufferedReader, ending: Ending) -> Iterator[bytes]:
    """Decompress as far as the bytes go: a killed recorder leaves no gzip trailer."""
    unpack = zlib.decompressobj(wbits=31)
    is_whole = True  # a member that began has ended
    while block := raw.read(1 << 16):
        while block:
            try:
                yield unpack.decompress(block, _CHUNK)
            except zlib.error:
                ending.is_cut = True
                return
            is_whole = unpack.eof
            # what does not fit in a chunk, or what follows the end of one gzip member: the next one
            block = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
            if unpack.eof:
                unpack = zlib.decompressobj(wbits=31)
    ending.is_cut = ending.is_cut or not is_whole
    yield unpack.flush()
