"""The recording inside of a bundle: every text masked, cut to a size from its beginning."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from sgmon.export.bundle.redact import Redactor
from sgmon.model import Event, LogReading
from sgmon.recording import codec
from sgmon.recording.ring_buffer import RingBuffer

WHERE = "recording"
_KEY_BEGIN, _KEY_END = "-----BEGIN ", "-----END "
#: a private key that never ends is let go after this much
_HELD_MOST = 1 << 16


def masked_recording(recording: bytes, redact: Redactor, most_bytes: int, *, log: bool) -> bytes:
    """A recording of the same events, masked. Its oldest part goes when it is larger than ``most_bytes``."""
    header = codec.header_of(recording)
    ring = RingBuffer(header.epoch, most_bytes, ticks=header.ticks)
    for event in masked(codec.events_of(recording), redact, log=log):
        ring.write(event)
    return b"".join(ring.parts(redact.text(header.note, WHERE)))


def masked(events: Iterator[Event], redact: Redactor, *, log: bool) -> Iterator[Event]:
    """Log text is cut anew at line ends: a secret must not hide across two readings."""
    held: dict[tuple[str, str], str] = {}  # by node and path
    last: dict[tuple[str, str], Event] = {}
    for event in events:
        reading = event.reading
        if isinstance(reading, LogReading):
            if not log:
                continue
            key = event.node, reading.path
            whole, held[key] = _whole_lines(held.get(key, "") + reading.text)
            reading = replace(reading, text=whole)
            last[key] = event
        yield replace(event, reading=redact.value(reading, WHERE))
    for key, event in last.items():
        if held[key] and isinstance(event.reading, LogReading):
            rest = replace(event.reading, text=held[key], change="")
            yield replace(event, reading=redact.value(rest, WHERE))


def _whole_lines(text: str) -> tuple[str, str]:
    """What can be masked now, and what waits for its end: an open line, an open private key."""
    end = max(text.rfind("\n"), text.rfind("\r")) + 1
    begun = text.rfind(_KEY_BEGIN, 0, end)
    if begun >= 0 and _KEY_END not in text[begun:end]:
        end = begun
    if len(text) - end > _HELD_MOST:
        end = len(text)
    return text[:end], text[end:]
