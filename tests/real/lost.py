"""Starts that are lost from the beginning: what is damaged, and the seconds of the warning and of the failure."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.real import measured
from tests.real.server import RealServer, until
from tests.real.watching import Watcher

SHARD = "model-00003-of-00005.safetensors"
INDEX = "model.safetensors.index.json"
#: a start on a busy machine takes minutes to its first own error
ENDS_S = 300.0
_UNIFIED, _MEMORY = Path("/sys/fs/cgroup/cgroup.controllers"), Path("/sys/fs/cgroup/memory")


def _missing(folder: Path) -> None:
    (folder / SHARD).unlink()


def _cut(folder: Path) -> None:
    os.truncate(folder / SHARD, 300_000)


def _wrong_index(folder: Path) -> None:
    (folder / INDEX).write_text((folder / INDEX).read_text()[:400])


def _wrong_config(folder: Path) -> None:
    (folder / "config.json").write_text((folder / "config.json").read_text()[:200])


def _no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


#: rule -> what is done to a copy of the model
DAMAGES: dict[str, Callable[[Path], None]] = {
    "shard-missing": _missing,
    "shard-cut": _cut,
    "index": _wrong_index,
    "config": _wrong_config,
    "tokenizer": _no_tokenizer,
}


@contextmanager
def held_port(port: int, host: str = "127.0.0.1") -> Iterator[int]:
    """Somebody else listens there."""
    with socket.socket() as held:
        held.bind((host, port))
        held.listen()
        yield port


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[tuple[str, ...]]:
    """The words before a command that start it in a control group with so little memory; skips where none can be made."""
    root = _UNIFIED.parent if _UNIFIED.exists() else _MEMORY
    own = next((x.split(":")[2] for x in Path("/proc/self/cgroup").read_text().splitlines() if "memory" in x), "")
    group = Path(f"{root}{own}") / f"sgmon-lost-{os.getpid()}"
    try:
        group.mkdir()
        limit = group / ("memory.max" if _UNIFIED.exists() else "memory.limit_in_bytes")
        limit.write_text(str(limit_bytes))
    except OSError as err:
        pytest.skip(f"no control group can be made here: {err}")
    try:
        yield "sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"
    finally:
        until(lambda: _emptied(group), 30, "an empty group")
        group.rmdir()


def _emptied(group: Path) -> bool:
    """Whether nothing runs in the group any more. The OOM killer may leave orphans of the server there: they are ended."""
    left = (group / "cgroup.procs").read_text().split()
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    return not left


def full_tmpfs(at: str) -> tuple[str, ...]:
    """The words before a command that give it a file system without any room at ``at``, in mounts of its own."""
    probe = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "x", at], capture_output=True, check=False)
    if shutil.which("unshare") is None or probe.returncode:
        pytest.skip(f"nothing can be mounted here: {probe.stderr.decode().strip()}")
    fill = f'mount -t tmpfs -o size=64k x {at}; dd if=/dev/zero of={at}/full bs=4k 2>/dev/null; exec "$@"'
    return "unshare", "-m", "sh", "-c", fill, "sh"


def is_lost(server: RealServer, watcher: Watcher, rule: str, situation: str = "") -> None:
    """It is said to fail, by this rule, before it ends; then it has crashed, without having been ready."""
    # after a bind error SGLang 0.5.23 shuts its application down and stays: the log's error is its end then
    until(lambda: server.ended or watcher.first("crashed"), ENDS_S, "the end of the server")
    crashed = watcher.first("crashed")
    ended_at = crashed.at if crashed is not None else time.time()
    said = watcher.first("will-fail")
    note(situation or rule, watcher, server.began_at, None if said is None else said.at, ended_at)
    assert said is not None, watcher.history() + server.text()[-2000:]
    assert said.verdict.rule == f"will-fail-{rule}", watcher.history()
    assert said.at < ended_at
    watcher.wait_for("crashed", timeout_s=60)
    assert "ready" not in watcher.states()


def is_said(server: RealServer, watcher: Watcher, rule: str, line: str, timeout_s: float = 180.0) -> None:
    """It is said to fail, by this rule; the server tries for long before it gives up, which is not awaited."""
    said = watcher.wait_for("will-fail", timeout_s=60)
    assert said.verdict.rule == f"will-fail-{rule}", watcher.history()
    server.wait_for_line(line, timeout_s)
    note(f"{rule} (tries on)", watcher, server.began_at, said.at, time.time())
    assert "ready" not in watcher.states()


def never_said(watcher: Watcher) -> None:
    """The start gets ready, and nothing was ever sure to fail."""
    assert watcher.wait_for("ready", "crashed", timeout_s=ENDS_S).state == "ready", watcher.history()
    assert "will-fail" not in watcher.states(), watcher.history()
    assert watcher.snapshot.preflight is not None
    assert not [one for one in watcher.snapshot.forecasts if one.level == "will-fail"]


def note(situation: str, watcher: Watcher, began: float, said_at: float | None, ended_at: float) -> None:
    """A row of the table."""
    said = watcher.first("will-fail")
    headline = "" if said is None else said.verdict.headline
    at_s = None if said_at is None else said_at - began
    state = "nothing" if said_at is None else "will-fail"
    measured.ROWS.append(measured.Row(f"will fail: {situation}", state, at_s, "ended", ended_at - began, headline))
