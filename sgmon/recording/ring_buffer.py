"""The flight ring: the last minutes of every watch, bounded, saved whole when something has gone wrong.

Events are kept as gzip members of some 64 KiB of lines each; the oldest member goes first. A saved ring is
their concatenation behind a header, which is a valid recording. The first reading of each kind and node after a
server was found is kept apart, so that what is left folds to a full picture.
"""

from __future__ import annotations

import socket
import threading
import zlib
from collections import deque
from pathlib import Path

import msgspec

from sgmon.model import Event, ServerReading
from sgmon.paths import private_folder, state_dir, write_whole
from sgmon.recording.codec import Encoded, Encoder, Header, Lines

RING_BYTES = 4_000_000
BLOCK_BYTES = 1 << 16
KEPT_FILES = 20
#: 2.5 times as fast as level 5, a fifth larger: it runs beside every watch
_LEVEL = 1
SUFFIX = ".jsonl.gz"


class RingBuffer:
    """The newest events, at most ``limit`` compressed bytes of them."""

    def __init__(self, epoch: float, limit: int = RING_BYTES, *, ticks: bool = True) -> None:
        self.epoch = epoch
        self.ticks = ticks
        self.limit = limit
        self.bytes = 0
        self.dropped = 0  # blocks that had to go
        self._members: deque[bytes] = deque()
        self._block: list[bytes] = []
        self._block_bytes = 0
        self._encoder = Encoder()
        self._lines = Lines()
        self._first: dict[tuple[str, str], bytes] = {}  # by node and kind
        self._lock = threading.Lock()  # the engine writes, a saving thread copies

    def write(self, event: Event) -> None:
        """Encode and keep one event."""
        encoded = self._encoder.encode(event)
        if encoded is not None:
            self.keep(encoded)

    def keep(self, encoded: Encoded) -> None:
        """Keep one event that is encoded already."""
        with self._lock:
            line = self._lines.line(encoded)
            self._keep_first(encoded)
            self._block.append(line)
            self._block_bytes += len(line) + 1
            if self._block_bytes >= BLOCK_BYTES:
                self._close_block()

    def parts(self, note: str) -> tuple[bytes, ...]:
        """What a file of it consists of: a copy of references, not of bytes. From any thread."""
        header = msgspec.json.encode(Header(epoch=self.epoch, host=socket.gethostname(), note=note, ticks=self.ticks))
        with self._lock:
            first = list(self._first.values()) if self.dropped else []
            members, block = tuple(self._members), list(self._block)
        return (_member([header, *first]), *members, _member(block))

    def save(self, path: Path, note: str) -> Path:
        """Write the ring as a recording. Raises OSError: a full disk is a finding of the caller's, not a crash."""
        private_folder(path.parent)
        return write_whole(path, self.parts(note))

    def _close_block(self) -> None:
        member = _member(self._block)
        self._members.append(member)
        self.bytes += len(member)
        self._block, self._block_bytes = [], 0
        self._lines = Lines()  # a block must not say "same" about a reading that went with an older one
        while self.bytes > self.limit and len(self._members) > 1:
            self.bytes -= len(self._members.popleft())
            self.dropped += 1

    def _keep_first(self, encoded: Encoded) -> None:
        node, kind, reading = encoded.event.node, encoded.event.kind, encoded.event.reading
        if reading is None or (node, kind) in self._first:
            return
        if isinstance(reading, ServerReading) and reading.server is not None:
            for key in [key for key in self._first if key[0] == node and key[1] != "node"]:
                del self._first[key]
        elif (node, "server") not in self._first and kind != "node":
            return
        self._first[node, kind] = Lines().line(encoded)


def flights_dir() -> Path:
    """Where saved rings lie. Raises OSError."""
    return state_dir() / "flights"


def new_path(stamp: str, state: str, pid: int | None = None) -> Path:
    """A name for a saved ring: time, pid of the server, verdict; the oldest files beyond ``KEPT_FILES`` go."""
    folder = private_folder(flights_dir())
    old = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime)
    for path in old[: max(0, len(old) - KEPT_FILES + 1)]:
        path.unlink(missing_ok=True)
    who = f"-pid{pid}" if pid is not None else ""
    return folder / f"{stamp}{who}-{state}{SUFFIX}"


def _member(lines: list[bytes]) -> bytes:
    if not lines:
        return b""
    squeeze = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)
    return squeeze.compress(b"".join(line + b"\n" for line in lines)) + squeeze.flush()
