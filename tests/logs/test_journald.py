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
from tests.logs.starts import SPEED, ready_as_on_the_host, serve
from tests.real.watching import Watcher
from tests.waiting import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
UNIT = f"sgmon-test-{os.getpid()}.service"


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


def test_dockers_journald_driver(journald, docker, beside, bare):
    container = serve(docker, "--log-driver", "journald")
    watcher = beside(container)
    ready_as_on_the_host(watcher, bare)
    assert watcher.snapshot.server.log_command[-1] == f"CONTAINER_ID_FULL={container.id}"


def test_podmans_journald_driver(journald, podman, beside, bare):
    container = serve(podman, "--log-driver", "journald")
    watcher = beside(container)
    ready_as_on_the_host(watcher, bare)
    assert watcher.snapshot.server.log_command[-1] == f"CONTAINER_ID_FULL={container.id}"
