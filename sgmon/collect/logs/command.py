"""The log as a command prints it: started without a shell, started again when it ends, ended with sgmon."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import subprocess
import sys

from sgmon.collect.logs.pace import POLL_S
from sgmon.collect.logs.stream import IDLE_S, Gathered, Stream, available
from sgmon.collect.probes.base import Clock, ProbeError
from sgmon.model import LogReading
from sgmon.patterns import regex
from sgmon.text import safe

FIRST_WAIT_S = 1.0
MOST_WAIT_S = 30.0
#: a command that has run for this long is started again as if for the first time
STEADY_S = 20.0
#: how much of its output is held back after a start, to see whether it says the same again
SAME_MOST_BYTES = 16 << 20
#: it has said what it had to say when nothing comes for this long
SETTLED_S = 1.0
_KEPT_BYTES = 2048
#: print what the server wrote to stderr to their own stderr: both are the log
_SPLITS = regex(r"(?:^|[/\s])(?:docker|podman|nerdctl|crictl)(?:\s|$)")
_END_S = 0.3

#: PR_SET_PDEATHSIG = 1: it ends with us however we end; Python ignores SIGPIPE, which must not be inherited
_RUN = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as err:
    sys.exit(f"{sys.argv[2]}: {err.strerror}")
"""


class CommandLog:
    """Follows what ``argv`` prints. The commands for it (docker logs, kubectl logs) print everything again when they
    are started again: what is the same as before is left out, and when it is not, the text begins anew."""

    def __init__(self, argv: tuple[str, ...], clock: Clock) -> None:
        self._argv = argv
        self._clock = clock
        self._name = safe(shlex.join(argv), 200)
        self._one_stream = any(_SPLITS.search(word) for word in argv)
        self._stream = Stream(self._name, "command", clock)
        self._gathered = Gathered()
        self._process: subprocess.Popen[bytes] | None = None
        self._begun = False
        self._started_t = 0.0
        self._again_t = float("-inf")
        self._wait_s = FIRST_WAIT_S
        self._stderr = b""
        self._told = ""
        self._ended = False  # the last that was told is that it has ended
        self._seen = hashlib.blake2b()  # of everything that was passed on
        self._seen_bytes = 0
        self._held: bytearray | None = None  # what came since a start, while it is not known whether it is the same
        self._data_t = 0.0
        self.interval_s = IDLE_S
        self.busy = False

    def read(self) -> LogReading | None:
        """Never waits: what has come, or how the command has ended."""
        self.busy, self.interval_s = False, IDLE_S
        now = self._clock.now()
        if self._process is None:
            if now < self._again_t:
                return None
            first, self._begun = not self._begun, True
            self._start(now)
            return self._stream.reading(b"") if first else None
        assert self._process.stdout is not None
        gathers = self._stream.caught_up and self._held is None
        data = self._gathered.take(self._process.stdout.fileno(), now, gathers)
        self._read_stderr(self._process)
        self.interval_s = POLL_S if self._gathered.waits else IDLE_S
        if self._gathered.waits:
            return None
        if data is None:
            return self._quiet(now)
        if not data:
            return self._end(now)
        self.busy, self._data_t = True, now
        if self._one_stream:
            self._stderr = (self._stderr + data)[-_KEPT_BYTES:]
        return self._pass_on(data)

    def close(self) -> None:
        if self._process is not None:
            _stop(self._process)
            _close(self._process)
            self._process = None

    def _start(self, now: float) -> None:
        self._started_t = self._data_t = now
        self._again_t = now + self._wait_s
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _RUN, str(os.getpid()), *self._argv],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if self._one_stream else subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as err:
            raise ProbeError(f"cannot start {self._name}: {err.strerror}", "it is tried again") from None
        self._stderr = b""
        self._held = bytearray() if self._seen_bytes else None

    def _read_stderr(self, process: subprocess.Popen[bytes]) -> None:
        if process.stderr is not None:
            self._stderr = (self._stderr + (available(process.stderr.fileno()) or b""))[-_KEPT_BYTES:]

    def _pass_on(self, data: bytes) -> LogReading | None:
        if self._held is None:
            return self._new(data)
        self._held += data
        if len(self._held) < self._seen_bytes <= SAME_MOST_BYTES:
            return None
        return self._compare()

    def _compare(self) -> LogReading | None:
        """What the command says after a new start, without what it has said before."""
        held, self._held = bytes(self._held or b""), None
        if hashlib.blake2b(held[: self._seen_bytes]).digest() == self._seen.digest():
            more = held[self._seen_bytes :]
            return self._pass_on(more) if more else None
        self._seen, self._seen_bytes = hashlib.blake2b(), 0
        return self._new(held, "truncated")

    def _new(self, data: bytes, change: str = "") -> LogReading:
        self._seen.update(data)
        self._seen_bytes += len(data)
        self._told, self._ended = "", False
        return self._stream.reading(data, change)

    def _quiet(self, now: float) -> LogReading | None:
        """Nothing new: a complaint of the command, if it has one, else nothing to say."""
        if now - self._data_t < SETTLED_S:
            return None
        self._stream.catch_up()
        if self._held:
            return self._compare()
        if self._ended:
            self._ended = False
            return self._tell("appeared", "")
        complaint = "" if self._one_stream else self._complaint()
        return self._tell("", complaint) if complaint else None

    def _end(self, now: float) -> LogReading | None:
        """It has ended, or closed its output. What it said less of than before (it could not reach the server, the
        container is gone) is no new text unless it ended well."""
        assert self._process is not None
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            code = _stop(self._process)
        self._read_stderr(self._process)
        _close(self._process)
        self._process = None
        if now - self._started_t >= STEADY_S:
            self._wait_s = FIRST_WAIT_S
        self._again_t = now + self._wait_s
        self._wait_s = min(self._wait_s * 2, MOST_WAIT_S)
        if self._held and code == 0:
            return self._compare()
        self._held = None
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        said = f": {self._complaint()}" if code and self._complaint() else ""
        self._ended = True
        return self._tell("ended", f"{self._name} has ended ({how}){said}; sgmon starts it again")

    def _tell(self, change: str, note: str) -> LogReading | None:
        """Once each."""
        if note == self._told and change != "appeared":
            return None
        self._told = note
        return self._stream.reading(b"", change, note)

    def _complaint(self) -> str:
        """The last line of its stderr, or of all that it printed."""
        lines = self._stderr.decode("utf-8", "replace").strip().splitlines()
        return safe(lines[-1], 200) if lines else ""


def _stop(process: subprocess.Popen[bytes]) -> int:
    """Ask it and its children to end, then kill them; the exit code, -9 for one that is stuck in the kernel."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            return process.wait(_END_S)
        except subprocess.TimeoutExpired:
            continue
    return -signal.SIGKILL


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
