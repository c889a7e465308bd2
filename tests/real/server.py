"""A real server for tests: started, watched line by line, ended. SGLang's needs ``make real-server`` once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
HOME = Path(os.environ.get("SGMON_REAL_SERVER") or CACHE / "sgmon" / "real-server")
INSTALLED = (HOME / "venv" / "bin" / "python").exists()
HOW = "no real SGLang server is installed: run `make real-server` once (3.5 GB), or set SGMON_REAL_SERVER"


def free_port(*taken: int) -> int:
    """A port that nothing listens on and that is none of these, outside the ephemeral range of gloo's sockets."""
    for port in range(31100 + os.getpid() % 500, 32700):
        if port in taken:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port")


class RealServer:
    """One server process tree in a session of its own; its log in a file."""

    SCRIPT = HERE / "serve.sh"
    HOME = HOME

    def __init__(
        self,
        directory: Path,
        model: str,
        *flags: str,
        port: int | None = None,
        env: Mapping[str, str] | None = None,
        log: str = "",
        wrap: tuple[str, ...] = (),
    ) -> None:
        """wrap: the words before the command, which end in ``exec``."""
        self.port = free_port() if port is None else port
        self.log = directory / (log or f"server-{self.port}.log")
        self.flags = flags
        self.model = model
        self.env = dict(env or {})
        self.wrap = wrap
        self.began_at = 0.0
        self.child: subprocess.Popen[bytes] | None = None

    def start(self) -> RealServer:
        self.began_at = time.time()
        with open(self.log, "ab") as output:
            self.child = subprocess.Popen(
                [
                    *self.wrap,
                    "bash",
                    str(self.SCRIPT),
                    str(self.HOME),
                    self.model,
                    "--port",
                    str(self.port),
                    *self.flags,
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **self.env},
                start_new_session=True,
            )
        return self

    @property
    def pid(self) -> int:
        assert self.child is not None
        return self.child.pid

    def text(self) -> str:
        return self.log.read_text(errors="replace").replace("\r", "\n")

    def wait_for_line(self, needle: str, timeout_s: float = 240.0) -> float:
        """When ``needle`` was first seen in the log. The log is a file that others write: it is polled."""
        until(lambda: needle in self.text() or self.ended, timeout_s, f"the line {needle!r}")
        assert needle in self.text(), f"the server ended without {needle!r}:\n{self.text()[-3000:]}"
        return time.time()

    def wait_for_workers(self, count: int, timeout_s: float = 120.0) -> list[int]:
        """The first ``count`` workers in birth order, while they import: SGLang starts its ranks first."""
        until(lambda: len(self.workers()) >= count or self.ended, timeout_s, f"{count} workers")
        return self.workers()[:count]

    def workers(self) -> list[int]:
        """Pids of the children that multiprocessing spawned and that have no title yet."""
        found = []
        for pid in self.tree()[1:]:
            try:
                if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
            except OSError:
                continue
        return sorted(found)

    def wait_for_title(self, title: str, timeout_s: float = 240.0) -> int:
        """Pid of the process with this title."""
        until(lambda: self.pid_of(title) is not None or self.ended, timeout_s, f"a process {title!r}")
        pid = self.pid_of(title)
        assert pid is not None, f"the server ended without a process {title!r}:\n{self.text()[-3000:]}"
        return pid

    def pid_of(self, title: str) -> int | None:
        for pid in self.tree():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0 ").split(b"\0")
            except OSError:
                continue
            if words[0].decode(errors="replace").strip() == title:
                return pid
        return None

    def tree(self) -> list[int]:
        pids, todo = [], [self.pid]
        while todo:
            pid = todo.pop()
            pids.append(pid)
            try:
                for task in Path(f"/proc/{pid}/task").iterdir():
                    todo += [int(word) for word in (task / "children").read_text().split()]
            except OSError:
                continue
        return pids

    def stop(self) -> None:
        if self.child is None:
            return
        for pid in self.tree():
            for number in (signal.SIGCONT, signal.SIGKILL):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    break
        self.child.wait(30)

    @property
    def ended(self) -> bool:
        return self.child is not None and self.child.poll() is not None


@contextmanager
def real_server(
    directory: Path,
    model: str,
    *flags: str,
    port: int | None = None,
    env: Mapping[str, str] | None = None,
    log: str = "",
    wrap: tuple[str, ...] = (),
) -> Iterator[RealServer]:
    server = RealServer(directory, model, *flags, port=port, env=env, log=log, wrap=wrap).start()
    try:
        yield server
    finally:
        server.stop()


def until(done: Callable[[], object], timeout_s: float, what: str) -> None:
    end = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout_s:.0f} s for {what}")
        time.sleep(0.1)


def sgmon(*argv: str, timeout_s: float = 400.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tui_app.cli", *argv], capture_output=True, text=True, timeout=timeout_s
    )


class Watch:
    """`sgmon wait --json` running beside a server; ``result`` when it has ended."""

    def __init__(self, *argv: str) -> None:
        self._done = threading.Event()
        self.code: int | None = None
        self.result: dict = {}
        self.said = ""
        self.ended_at = 0.0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tui_app.cli", "wait", "--json", *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        out, self.said = self.process.communicate()
        self.ended_at = time.time()
        self.code = self.process.returncode
        self.result = json.loads(out) if out.strip() else {}
        self._done.set()

    def wait(self, timeout_s: float = 400.0) -> dict:
        assert self._done.wait(timeout_s), f"sgmon wait did not end in {timeout_s} s"
        return self.result

    def stop(self) -> None:
        self.process.terminate()
        self._done.wait(10)

    @property
    def states(self) -> list[str]:
        return [change["state"] for change in self.result.get("verdicts", [])]


def drop_page_cache(folder: Path) -> None:
    """Forget the cached pages of the files in a folder, so that the next load reads the disk."""
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def copy_model(name: str, to: Path, home: Path = HOME) -> Path:
    """A private copy of an installed model, to be damaged."""
    shutil.copytree(home / "models" / name, to)
    return to
