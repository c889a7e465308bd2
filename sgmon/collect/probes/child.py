"""A helper process that answers one JSON line per request, and may hang or crash without harm to us.

Used for libraries that are known to block in the kernel or to bring the process down (NVML).
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sgmon.paths import code_descriptors, code_path, code_root

_MAX_ANSWER_BYTES = 8 << 20
_STDERR_KEPT_BYTES = 2048


class ChildDiedError(Exception):
    """The helper ended without an answer. words: how it ended."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class GpuChild:
    """One running helper: ``send`` a request, then ``receive`` with a time limit. Not for several threads at once."""

    def __init__(self, module: str, now: Callable[[], float], argv: Sequence[str] = ()) -> None:
        self._now = now
        self._answer = bytearray()
        self._stderr = b""
        self.place = _shared_place()
        start = f"from {module} import main; main()"  # "-m" would import runpy, and what that needs
        command = [sys.executable, "-c", start, str(os.getpid()), str(self.place), *argv]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=(self.place, *code_descriptors()),
                cwd="/",  # "-c" puts the working directory first on the path: nobody's json.py shall be imported
                env=_environment(),
            )
        except OSError:
            os.close(self.place)  # it is tried again and again
            raise
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, request: dict[str, Any]) -> None:
        """Write one request. Raises ``ChildDiedError`` when nobody reads it any more."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        except (BrokenPipeError, ValueError):
            raise ChildDiedError(self._how_it_ended()) from None

    def receive(self, limit_s: float) -> dict[str, Any] | None:
        """The next answer, or None when there is none after ``limit_s`` seconds."""
        stdout, stderr = self._process.stdout, self._process.stderr
        assert stdout is not None
        assert stderr is not None
        until = self._now() + limit_s
        poll = select.poll()
        poll.register(stdout, select.POLLIN)
        poll.register(stderr, select.POLLIN)
        while b"\n" not in self._answer:
            left = until - self._now()
            if left <= 0:
                return None
            for fd, _ in poll.poll(left * 1000):
                data = _read(fd)
                if fd == stderr.fileno():
                    self._stderr = (self._stderr + data)[-_STDERR_KEPT_BYTES:]
                    if not data:
                        poll.unregister(fd)
                elif not data or len(self._answer) > _MAX_ANSWER_BYTES:
                    raise ChildDiedError(self._how_it_ended())
                else:
                    self._answer += data
        line, _, rest = bytes(self._answer).partition(b"\n")
        self._answer = bytearray(rest)
        try:
            answer = json.loads(line)
        except ValueError:
            raise ChildDiedError("child wrote no JSON: " + repr(line[:60])) from None
        return answer if isinstance(answer, dict) else {}

    def where(self) -> str:
        """What the helper said it was about to do last ("call gpu"); it writes this without a system call."""
        try:
            return os.pread(self.place, 96, 0).split(b"\0", 1)[0].decode("ascii", "replace")
        except OSError:
            return ""

    def runnable(self) -> bool:
        """Whether it runs or waits for a CPU (state R), so that it is not blocked in a call."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b") ")[2][:1] == b"R"
        except OSError:
            return False

    def kill(self) -> bool:
        """Kill it; True when it is gone. False: it is stuck in the kernel (state D), ask again later by ``gone``."""
        try:
            self._process.kill()
        except ProcessLookupError:
            pass
        try:
            self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            return False
        self._close_pipes()
        return True

    def gone(self) -> bool:
        """Whether a killed helper has ended by now."""
        if self._process.poll() is None:
            return False
        self._close_pipes()
        return True

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass
        if self.place >= 0:
            os.close(self.place)
            self.place = -1

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            return "child closed its output but runs on"
        if code < 0:
            try:
                return f"child died: {signal.Signals(-code).name}"
            except ValueError:
                return f"child died: signal {-code}"
        assert self._process.stderr is not None
        self._stderr = (self._stderr + _read(self._process.stderr.fileno()))[-_STDERR_KEPT_BYTES:]
        last = self._stderr.decode("utf-8", "replace").strip().splitlines()
        return f"child ended with exit code {code}" + (f": {last[-1][:160]}" if last else "")


def _shared_place() -> int:
    """A page that we and the helper both see: there it leaves word of what it is about to do."""
    place = os.memfd_create("sgmon-child", 0)
    os.ftruncate(place, 4096)
    return place


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 1 << 18)
    except BlockingIOError:
        return b""
    except OSError:
        return b""


def _environment() -> dict[str, str]:
    """Ours, with the path of this package when it runs from a checkout."""
    env = dict(os.environ)
    if os.path.basename(code_root()) not in ("site-packages", "dist-packages"):
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (*code_path(), env.get("PYTHONPATH", ""))))
    return env
