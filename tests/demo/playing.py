"""Looking at a running play: its log, its processes by their title, its GPUs."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from sgmon.demo import DemoServer
from tests.waiting import eventually

#: fast enough for tests, slow enough that the processes stay in step on a busy machine
SPEED = 15.0


def log_of(server: DemoServer) -> bytes:
    return Path(server.log).read_bytes()


def logged(server: DemoServer, text: str, timeout_s: float = 100.0) -> None:
    eventually(lambda: text.encode() in log_of(server), timeout_s)


def silent(server: DemoServer) -> bytes:
    """The log when it has not grown for half a second."""
    while True:
        before = log_of(server)
        time.sleep(0.5)
        if log_of(server) == before:
            return before


def processes(server: DemoServer) -> dict[str, int]:
    """Title (or command line) -> pid, of the server's session."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            session = int(stat.read_text().rpartition(")")[2].split()[3])
            line = (stat.parent / "cmdline").read_bytes().rstrip(b"\0 ").replace(b"\0", b" ").decode()
        except OSError:
            continue
        if session == server.pid:
            found[line] = int(stat.parent.name)
    return found


def zombies(server: DemoServer) -> int:
    """How many ranks are dead and not waited for by the launcher: they have no title any more."""
    found = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        found += name.startswith("sglang::sched") and rest.split()[0] == "Z" and rest.split()[3] == str(server.pid)
    return found


def rank_pid(server: DemoServer, rank: int) -> int:
    return eventually(lambda: processes(server).get(f"sglang::scheduler_TP{rank}"))


def proc(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


def state(pid: int) -> str:
    return proc(pid, "stat").rpartition(")")[2].split()[0]


def cpu_ticks(pid: int) -> int:
    fields = proc(pid, "stat").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def gpus(server: DemoServer) -> list[dict[str, Any]]:
    content = json.loads(Path(server.gpus).read_text())
    return list(content["gpus"])


def health(port: int) -> int | None:
    """Status of /health; None: refused."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None
