"""The flight ring: the last minutes of every watch, bounded, saved whole when something has gone wrong.

Events are kept as gzip members of some 64 KiB of lines each; the oldest member goes first. A saved ring is
their concatenation behind a header, which is a valid recording. The first reading of each kind after a server
was found is kept apart, so that what is left folds to a full picture.
"""

from __future__ import annotations

import gzip
import os
import socket
from collections import deque
from pathlib import Path

import msgspec
import platformdirs

from sgmon.model import Event, ServerReading
from sgmon.record import Encoder, Header

RING_BYTES = 4_000_000
BLOCK_BYTES = 1 << 16
KEPT_FILES = 20


def state_dir() -> Path:
    """``$XDG_STATE_HOME/sgmon``, made when missing. Raises OSError where it cannot be made."""
    path = Path(platformdirs.user_state_dir("sgmon"))
    path.mkdir(parents=True, exist_ok=True)
    return path


class FlightRing:
    """The newest events, at most ``limit`` compressed bytes of them."""

    def __init__(self, epoch: float, limit: int = RING_BYTES) -> None:
        self.epoch = epoch
        self.limit = limit
        self.bytes = 0
        self._members: deque[bytes] = deque()
        self._block: list[bytes] = []
        self._block_bytes = 0
        self._encoder = Encoder()
        self._first: dict[str, bytes] = {}

    def write(self, event: Event) -> None:
        line = self._encoder.encode(event)
        if line is None:
            return
        self._keep_first(event)
        self._block.append(line)
        self._block_bytes += len(line) + 1
        if self._block_bytes >= BLOCK_BYTES:
            self._close_block()

    def save(self, path: Path, note: str) -> Path:
        """Write the ring as a recording. Raises OSError: a full disk is a finding of the caller's, not a crash."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".part")
        header = Header(epoch=self.epoch, host=socket.gethostname(), note=note)
        try:
            with open(partial, "wb") as file:
                file.write(_member([msgspec.json.encode(header), *self._first.values()]))
                for member in self._members:
                    file.write(member)
                file.write(_member(self._block))
            os.replace(partial, path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
        return path

    def _close_block(self) -> None:
        member = _member(self._block)
        self._members.append(member)
        self.bytes += len(member)
        self._block, self._block_bytes = [], 0
        self._encoder = Encoder()  # a block must not say "same" about a reading that went with an older one
        while self.bytes > self.limit and len(self._members) > 1:
            self.bytes -= len(self._members.popleft())

    def _keep_first(self, event: Event) -> None:
        reading = event.reading
        if isinstance(reading, ServerReading) and reading.server is not None and "server" not in self._first:
            self._first.clear()
        elif "server" not in self._first or event.kind in self._first:
            return
        line = Encoder().encode(event)
        if line is not None:
            self._first[event.kind] = line


def _member(lines: list[bytes]) -> bytes:
    return gzip.compress(b"".join(line + b"\n" for line in lines), compresslevel=5) if lines else b""


def new_path(stamp: str, state: str) -> Path:
    """A name for a saved ring: time and verdict; the oldest files beyond ``KEPT_FILES`` are removed."""
    folder = state_dir() / "flights"
    folder.mkdir(parents=True, exist_ok=True)
    old = sorted(folder.glob("*.jsonl.gz"), key=lambda path: path.stat().st_mtime)
    for path in old[: max(0, len(old) - KEPT_FILES + 1)]:
        path.unlink(missing_ok=True)
    return folder / f"{stamp}-{state}.jsonl.gz"
