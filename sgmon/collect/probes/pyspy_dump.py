"""One run of `py-spy dump` on one process: started, watched, and made into a ``StackDump``."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import site
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from sgmon.analyse.stacks import parse, refusals
from sgmon.model import Missing, Process, StackDump
from sgmon.proc import files, stat, status

DUMP_S = 5.0  # a dump takes 15 ms on an idle host, up to 1.4 s on a busy one
NATIVE_S = 20.0  # 0.4-3.4 s
_MAX_OUTPUT_BYTES = 32 << 20
_CAP_SYS_PTRACE = 19


def find_pyspy() -> str | None:
    """The py-spy that was installed with sgmon, else the one on the path.

    A user's installation has its commands in a folder of their own, not beside Python, and often not on the path.
    """
    command = Path(sys.argv[0]) if sys.argv[0] else Path("sgmon")
    folders = [Path(sys.executable).parent, Path(site.getuserbase(), "bin")]
    folders += [command.absolute().parent] if command.is_file() else []
    for path in (folder / "py-spy" for folder in folders):
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return shutil.which("py-spy")


class RunningDump:
    """A py-spy that has been started. Feed it its pipes' data; it is finished when both are at their end."""

    def __init__(
        self,
        pyspy: str,
        process: Process,
        native: bool,
        sample: int,
        root: str,
        now: Callable[[], float],
        source_tree: str = "",
    ) -> None:
        self.process = process
        self.sample = sample
        self._root = root
        self._source_tree = source_tree
        self._now = now
        self._wanted_native = native
        self._state_before = _state(root, process.pid)
        # A stopped process cannot be suspended again, and a frozen one never answers: only read it.
        self.native = native and self._state_before not in ("T", "t") and not process.frozen
        self.started_t = now()
        self.deadline_t = self.started_t + (NATIVE_S if self.native else DUMP_S)
        how = "--native" if self.native else "--nonblocking"  # py-spy does not take both
        argv = [pyspy, "dump", how, "--json", "--pid", str(process.pid)]
        self.command = shlex.join(["py-spy", *argv[1:]])
        self._output: dict[int, bytearray] = {}
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=_environment(),
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._pipes = (self._process.stdout, self._process.stderr)
        for pipe in self._pipes:
            os.set_blocking(pipe.fileno(), False)
            self._output[pipe.fileno()] = bytearray()
        self._stdout, self._stderr = (pipe.fileno() for pipe in self._pipes)
        self.open_fds = {self._stdout, self._stderr}

    def feed(self, fd: int) -> None:
        """Take what this pipe holds."""
        try:
            data = os.read(fd, 1 << 18)
        except BlockingIOError:
            return
        self._output[fd] += data
        if not data or len(self._output[fd]) > _MAX_OUTPUT_BYTES:
            self.open_fds.discard(fd)

    def torn(self) -> bool:
        """Whether it failed in a way that a second try mends (the stack moved while it was read)."""
        if self._process.poll() in (None, 0):
            return False
        return self._refusal(timed_out=False).key == "torn"

    def finish(self) -> StackDump:
        """Reap py-spy (kill it when its time is over) and say what came of it."""
        timed_out = bool(self.open_fds)
        took_s = self._now() - self.started_t
        left = self._end(timed_out)
        dump = StackDump(
            pid=self.process.pid,
            rank=self.process.rank,
            role=self.process.role,
            t=self.started_t,
            took_s=took_s,
            command=self.command,
            native=self.native,
            sample=self.sample,
        )
        missing: tuple[Missing, ...] = (left,) if left else ()
        if self._wanted_native and not self.native:
            missing += (Missing("native frames", "the process is stopped: only Python frames can be read"),)
        code = self._process.returncode
        if not timed_out and code == 0:
            try:
                text = self._output[self._stdout].decode("utf-8", "replace")
                threads = parse.parse_pyspy(text, self._source_tree)
                return replace(dump, threads=threads, missing=missing)
            except parse.ParseError as err:
                return replace(dump, error=str(err), missing=missing)
        reason = self._refusal(timed_out)
        missing = (Missing(refusals.SIGNAL, reason.why, reason.remedy()), *missing)
        return replace(dump, error=reason.why, missing=missing)

    def _end(self, timed_out: bool) -> Missing | None:
        """Kill when late, reap, close; then look whether the target runs on."""
        if timed_out:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            pass  # stuck in the kernel: left behind, reaped by subprocess when the next one starts
        for pipe in self._pipes:
            pipe.close()
        return self._look_after() if self.native else None

    def _look_after(self) -> Missing | None:
        """A dump that attached may have left its target stopped: then let it run on, and say so."""
        pid = self.process.pid
        if self._state_before in ("T", "t", "", "Z") or _state(self._root, pid) not in ("T", "t"):
            return None
        try:
            tracer = status.read(self._root, pid).tracer_pid
        except OSError:
            return None
        if tracer not in (0, None, self._process.pid):
            return None
        try:
            os.kill(pid, signal.SIGCONT)
        except OSError as err:
            words = f"py-spy left process {pid} stopped, and it cannot be continued: {err.strerror}"
            return Missing("running", words, f"kill -CONT {pid}")
        return Missing("running", f"py-spy left process {pid} stopped; sgmon continued it (SIGCONT)")

    def _refusal(self, timed_out: bool) -> refusals.Refusal:
        pid, root = self.process.pid, self._root
        try:
            found = stat.read(root, pid)
            state, threads = found.state, found.threads
        except (OSError, ValueError):
            state, threads = "", None
        try:
            who = status.read(root, pid)
            uid_same = None if who.uid is None else who.uid == os.geteuid()
            tracer = who.tracer_pid
        except OSError:
            uid_same = tracer = None
        return refusals.refusal(
            self._output[self._stderr].decode("utf-8", "replace"),
            state,
            uid_same,
            files.yama_scope(root),
            None if uid_same and os.geteuid() != 0 else may_ptrace(),  # of one's own needs no capability
            frozen=self.process.frozen,
            tracer_pid=tracer if tracer != self._process.pid else None,
            threads=threads,
            timed_out=timed_out,
            nonblocking=not self.native,
        )


def _environment() -> dict[str, str] | None:
    """Ours (None), without a wish for backtraces in py-spy's messages."""
    return {**os.environ, "RUST_BACKTRACE": "0"} if "RUST_BACKTRACE" in os.environ else None


def failed(process: Process, reason: refusals.Refusal, t: float, sample: int) -> StackDump:
    """A dump that could not even be started."""
    missing = Missing(refusals.SIGNAL, reason.why, reason.remedy())
    return StackDump(
        pid=process.pid,
        rank=process.rank,
        role=process.role,
        t=t,
        error=reason.why,
        missing=(missing,),
        sample=sample,
    )


def may_ptrace() -> bool | None:
    """Whether we hold CAP_SYS_PTRACE (bit 19 of CapEff)."""
    try:
        text = files.text("/proc/self/status")
        return bool(int(text.split("CapEff:", 1)[1].split(None, 1)[0], 16) >> _CAP_SYS_PTRACE & 1)
    except (OSError, IndexError, ValueError):
        return None


def same_process(root: str, process: Process) -> bool:
    """Whether the pid is still this process (start_ticks 0: not known, any will do)."""
    try:
        return process.start_ticks in (0, stat.read(root, process.pid).start_ticks)
    except (OSError, ValueError):
        return False


def _state(root: str, pid: int) -> str:
    try:
        return stat.read(root, pid).state
    except (OSError, ValueError):
        return ""
