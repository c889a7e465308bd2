"""The simulated server as a systemd unit: a real journald, a real journalctl, and the unit's control group. systemd
itself is played: the test makes the group, and the output goes into the journal by systemd-cat."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.logs import runtimes
from tests.logs.starts import SPEED, free_port, ready_as_on_the_host
from tests.real.watching import Watcher

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
JOURNALD = "/lib/systemd/systemd-journald"
UNIT = f"sgmon-test-{os.getpid()}.service"
SOCKET = Path("/run/systemd/journal/stdout")


@pytest.fixture
def journald() -> Iterator[None]:
    """The one that runs here, else one of our own."""
    runtimes.need("journalctl", "systemd-cat")
    if not Path(JOURNALD).exists():
        runtimes.skip(f"there is no {JOURNALD} (apt-get install systemd)")
    if any(path.read_text() == "systemd-journal\n" for path in Path("/proc").glob("[0-9]*/comm")):
        yield
        return
    for folder in ("/run/systemd/journal", "/run/log/journal"):
        os.makedirs(folder, exist_ok=True)
    SOCKET.unlink(missing_ok=True)
    daemon = subprocess.Popen([JOURNALD], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    end = time.monotonic() + 20
    while not SOCKET.exists():
        if daemon.poll() is not None or time.monotonic() > end:
            daemon.kill()
            runtimes.skip(f"systemd-journald does not run here: {daemon.communicate()[1].decode()[-300:]}")
        select.select([], [], [], 0.05)
    yield
    daemon.terminate()
    daemon.communicate()


@pytest.fixture
def group() -> Iterator[Path]:
    """The control group of the unit, in the hierarchy in which journald looks (cgroup2, alone or beside v1)."""
    rows = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    place = next((row[1] for row in rows if row[2] == "cgroup2"), None)
    if place is None:
        runtimes.skip("there is no cgroup2 hierarchy")
    folder = Path(place or "") / "system.slice" / UNIT
    try:
        folder.mkdir(parents=True)
    except OSError as err:
        runtimes.skip(f"control groups cannot be made here: {err}")
    yield folder
    end = time.monotonic() + 20
    while folder.exists() and time.monotonic() < end:
        for pid in (folder / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        try:
            folder.rmdir()
        except OSError:  # the last processes are ending
            select.select([], [], [], 0.1)


def test_a_unit(journald, group, bare, tmp_path):
    argv = [sys.executable, "-m", "tests.logs.in_container", "healthy", "2", str(free_port()), str(SPEED)]
    enter = f'echo $$ > {group}/cgroup.procs; exec systemd-cat "$@"'
    server = subprocess.Popen(["sh", "-c", enter, "sh", *argv], stdin=subprocess.DEVNULL, start_new_session=True)
    watcher = Watcher(tmp_path / "unit.jsonl.gz", pid=server.pid)
    try:
        ready_as_on_the_host(watcher, bare)
        named = watcher.snapshot.server
        assert named.log_command[-1] == f"_SYSTEMD_UNIT={UNIT}"
        assert named.log_source == f"fd 1 and 2 of pid {server.pid} -> journal of {UNIT}"
        assert shutil.which("journalctl") and watcher.snapshot.log.kind == "command"
    finally:
        watcher.stop()
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
