"""One run of the command that reaches a machine: its pipes without waiting, from the first byte to its end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence

from sgmon.remote import packing
from sgmon.remote.wire import MARK, Unpacker

_CHUNK = 1 << 16
_STDERR_KEPT, _NOISE_KEPT = 8192, 1 << 16
#: for a command to end by itself, and after it was killed
ENDS_S, _KILLED_S = 0.2, 0.2


class Connection:
    """Started with ``argv``; it is given the collector's archive first. Raises OSError when it cannot start."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self.stdin, self.stdout, self.stderr = (pipe.fileno() for pipe in self._pipes)
        for pipe in self._pipes:
            os.set_blocking(pipe.fileno(), False)
        program, archive = packing.bootstrap(), packing.archive()
        self._to_send = bytearray(b"%d\n%b%d\n%b" % (len(program), program, len(archive), archive))
        self._unpacker: Unpacker | None = None
        self._noise = b""
        self._said = b""
        self.open = {self.stdin, self.stdout, self.stderr}
        self.received = 0

    @property
    def wants_to_write(self) -> bool:
        return bool(self._to_send) and self.stdin in self.open

    @property
    def is_up(self) -> bool:
        """Whether the collector has begun to speak."""
        return self._unpacker is not None

    @property
    def complaints(self) -> str:
        """What the command wrote to stderr; what came before the collector, where it wrote nothing there."""
        said = self._said or (b"" if self.is_up else self._noise)
        return said.decode("utf-8", "replace")

    def send(self, line: bytes) -> None:
        """Put a line into the buffer."""
        self._to_send += line + b"\n"

    def write(self) -> None:
        """Write as much as the pipe takes."""
        try:
            count = os.write(self.stdin, self._to_send[:_CHUNK])
            del self._to_send[:count]
        except BlockingIOError:
            return
        except OSError:  # nobody reads it any more: its end says why
            self.open.discard(self.stdin)
            self._to_send.clear()

    def read(self) -> list[bytes]:
        """The whole lines that have come. Raises ``ValueError`` for a stream that is damaged."""
        data = self._some(self.stdout)
        self.received += len(data)
        if self._unpacker is not None:
            return self._unpacker.lines(data) if data else []
        self._noise += data
        before, mark, rest = self._noise.partition(MARK)
        if not mark:
            self._noise = self._noise[-_NOISE_KEPT:]
            return []
        self._unpacker, self._noise = Unpacker(), before
        return self._unpacker.lines(rest) if rest else []

    def read_complaints(self) -> None:
        self._said = (self._said + self._some(self.stderr))[-_STDERR_KEPT:]

    def _some(self, fd: int) -> bytes:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self.open.discard(fd)
        return data

    def _read_what_is_left(self) -> None:
        """What it wrote last, which says why it has ended, may still be in the pipes: a pipe holds one chunk."""
        if self.stderr in self.open:
            self.read_complaints()
        if not self.is_up and self.stdout in self.open:
            self._noise = (self._noise + self._some(self.stdout))[-_NOISE_KEPT:]

    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    def end(self, wait_s: float = ENDS_S) -> int | None:
        """Close its stdin, which ends the collector; a command that has not ended after ``wait_s`` is killed."""
        self._pipes[0].close()
        for number, patience_s in ((None, wait_s), (signal.SIGKILL, _KILLED_S)):
            try:
                if number is not None:
                    os.killpg(self._process.pid, number)
            except ProcessLookupError:
                pass
            try:
                self._process.wait(patience_s)
                break
            except subprocess.TimeoutExpired:
                continue  # in the kernel: left behind
        self._read_what_is_left()
        for pipe in self._pipes[1:]:
            pipe.close()
        return self._process.returncode
