"""A server for the benchmarks: real processes with SGLang's command line and titles, any number of ranks and threads.

Unlike ``sgmon.demo`` it does nothing but wait, answer its health check, and, when asked, write a log.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fold import READY, START
from benchmarks.log import steady

#: the launcher: spawns the workers, says their pids, answers /health until its stdin ends
_LAUNCHER = """
import http.server, os, subprocess, sys, threading
worker = "import threading, sys\\nfor _ in range({threads} - 1):\\n    threading.Thread(target=threading.Event().wait, daemon=True).start()\\nprint(flush=True)\\nthreading.Event().wait()\\n"
children = []
for title in [f"sglang::scheduler_TP{{n}}" for n in range({ranks})] + ["sglang::detokenizer"]:
    child = subprocess.Popen([title], executable=sys.executable, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdin.write(worker.encode())
    child.stdin.close()
    children.append(child)
for child in children:
    child.stdout.readline()
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *words):
        pass
port = int(sys.argv[sys.argv.index("--port") + 1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer)
threading.Thread(target=server.serve_forever, daemon=True).start()
with open(int(os.environ["TELL"]), "w") as tell:
    print(*(child.pid for child in children), file=tell)
sys.stdin.read()
for child in children:
    child.kill()
"""


@dataclass(frozen=True, slots=True)
class Server:
    """workers: pids of the ranks in their order. log: where descriptor 1 of the launcher leads."""

    pid: int
    workers: tuple[int, ...]
    log: Path


@contextmanager
def serving(ranks: int = 8, threads: int = 200, log: Path | None = None) -> Iterator[Server]:
    """A server that is ready and idle. log: of an existing log; without one a short one is written."""
    with tempfile.TemporaryDirectory(prefix="sgmon-bench-") as name:
        folder = Path(name)
        module = folder / "sglang" / "launch_server.py"
        module.parent.mkdir()
        (module.parent / "__init__.py").write_text("")
        module.write_text(_LAUNCHER.format(ranks=ranks, threads=threads))
        path = log or folder / "server.log"
        pids: list[int] = []
        launcher, told = _launch(folder, path, ranks)
        try:
            with open(told) as words:
                pids += map(int, words.read().split())
            if len(pids) != ranks + 1:
                raise RuntimeError("the server of the benchmark did not start")
            if log is None:
                path.write_text(START + READY + steady(500))
            else:
                os.utime(log)  # what was there before a server began is of an earlier start
            yield Server(launcher.pid, tuple(pids[:ranks]), path)
        finally:
            for pid in pids:
                os.kill(pid, 9)
            launcher.kill()
            launcher.communicate()


def _launch(folder: Path, log: Path, ranks: int) -> tuple[subprocess.Popen[bytes], int]:
    """The launcher, and the descriptor on which it tells the pids of what it has spawned."""
    from sgmon.demo.starter import _free_ports

    argv = [sys.executable, "-m", "sglang.launch_server", "--model-path", "/models/72b"]
    argv += ["--tp-size", str(ranks), "--port", str(_free_ports(1)[0])]
    told, tell = os.pipe()
    env = {**os.environ, "PYTHONPATH": str(folder), "TELL": str(tell)}
    with log.open("ab") as out:
        launcher = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=out, stderr=out, cwd=folder, env=env, pass_fds=(tell,)
        )
    os.close(tell)
    return launcher, told


@contextmanager
def gpus(folder: Path, pids: tuple[int, ...]) -> Iterator[list[str]]:
    """Eight GPUs of the NVML double, one process on each; yields the words that put it before a command."""
    from tests.fakenvml.library import State, build

    state = State(folder / "state")
    state.write(
        *("count 8", "gpu * name NVIDIA H200", "gpu * mem 20000", "gpu * power 122000", "gpu * util 0"),
        *(f"proc {index} {pid} auto" for index, pid in enumerate(pids[:8])),
    )
    yield ["env", f"LD_LIBRARY_PATH={build(folder)}", f"FAKE_NVML_STATE={state.path}"]
