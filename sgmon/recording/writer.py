"""Writes a recording while the watch goes on: from a thread of its own, flushed each second.

The engine only hands events over. A disk that is full or hangs stops no watch: what was not written waits in bounded
memory, what no longer fits there is counted, and the recording goes on when there is room again.
"""

from __future__ import annotations

import errno
import os
import threading
import zlib
from pathlib import Path

import msgspec

from sgmon.model import Event, ProbeReading
from sgmon.paths import open_private
from sgmon.recording.codec import Encoded, Encoder, Header, Lines

FLUSH_S = 1.0
CLOSE_S = 2.0
#: compressed bytes that wait for the disk at most
PENDING_BYTES = 8 << 20
NAME = "recording"
_REMEDIES = {
    errno.ENOSPC: "make room there: it goes on by itself",
    errno.EDQUOT: "the quota is used up: make room there, it goes on by itself",
    errno.EIO: "look at dmesg",
}


class Recorder:
    """One recording. Raises OSError when the file cannot be made; later errors are told by ``trouble``."""

    def __init__(self, path: Path, epoch: float, *, host: str = "", note: str = "") -> None:
        self.path = path
        self.lost = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = open_private(path, os.O_WRONLY | os.O_TRUNC)
        self._squeeze = zlib.compressobj(5, zlib.DEFLATED, 31) if path.suffix == ".gz" else None
        self._encoder = Encoder()
        self._lines = Lines()
        self._lock = threading.Lock()  # around the lines and what is squeezed; never held while writing
        self._fresh = bytearray()
        self._pending = bytearray()
        self._error: OSError | None = None
        self._wake = threading.Event()
        self._written = threading.Condition()
        self._rounds = 0
        self._closing = False
        self._add(msgspec.json.encode(Header(epoch=epoch, host=host, note=note, ticks=True)))
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def write(self, event: Event) -> None:
        """Encode and take over one event. Returns at once."""
        encoded = self._encoder.encode(event)
        if encoded is not None:
            self.take(encoded)

    def take(self, encoded: Encoded) -> None:
        """Take over one event that is encoded already. Returns at once."""
        with self._lock:
            if self._closing:
                return
            if len(self._pending) + len(self._fresh) > PENDING_BYTES:
                self.lost += encoded.body is not None
                self._lines = Lines()  # "same" must not refer to what is lost
                return
            self._add(self._lines.line(encoded))

    def trouble(self) -> ProbeReading:
        """What is wrong with the file now, in words; no error: nothing."""
        error = self._error
        if error is None:
            return ProbeReading(NAME)
        words = f"{self.path} cannot be written: {error.strerror}"
        if self.lost:
            words += f"; {self.lost} events are lost"
        return ProbeReading(NAME, error=words, remedy=_REMEDIES.get(error.errno or 0, ""))

    def flush(self, timeout_s: float = CLOSE_S) -> None:
        """Wait until what was handed over so far is written, or cannot be."""
        with self._written:
            wanted = self._rounds + 2  # one may be under way, begun before our last event
            self._wake.set()
            self._written.wait_for(lambda: self._rounds >= wanted or self._again(), timeout_s)

    def close(self) -> bool:
        """End the file. False when it could not be finished in time: it opens all the same."""
        with self._lock:
            self._closing = True
        self._wake.set()
        self._thread.join(CLOSE_S)
        return not self._thread.is_alive() and self._error is None

    def _again(self) -> bool:
        self._wake.set()
        return False

    def _add(self, line: bytes) -> None:
        line += b"\n"
        self._fresh += self._squeeze.compress(line) if self._squeeze is not None else line

    def _run(self) -> None:
        closing = False
        while not closing:
            self._wake.wait(FLUSH_S)
            self._wake.clear()
            with self._lock:
                closing = self._closing
                if self._squeeze is not None:
                    self._fresh += self._squeeze.flush(zlib.Z_FINISH if closing else zlib.Z_SYNC_FLUSH)
                self._pending += self._fresh
                self._fresh = bytearray()
            self._drain()
            with self._written:
                self._rounds += 1
                self._written.notify_all()
        os.close(self._fd)

    def _drain(self) -> None:
        """Write what waits, as far as there is room."""
        while self._pending:
            try:
                count = os.write(self._fd, bytes(self._pending[: 1 << 20]))
            except OSError as err:
                self._error = err
                return
            with self._lock:
                del self._pending[:count]
        self._error = None
