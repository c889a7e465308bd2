"""A ``timeout`` above the launcher, and what the launcher's environment says of its GPUs."""

from __future__ import annotations

import os

import pytest

from sgmon.discovery import find
from sgmon.discovery.parents import duration_of
from sgmon.settings import Settings
from tests.proc.fake import BOOT, FakeProc

LAUNCH = ["/opt/v/bin/python", "-m", "sglang.launch_server", "--model-path", "m"]


@pytest.mark.parametrize(
    ("command", "seconds"),
    [
        ("timeout 600 python -m sglang.launch_server", 600.0),
        ("/usr/bin/timeout -k 5 --signal=INT 1.5h bash serve.sh", 5400.0),
        ("timeout --kill-after 10s -s KILL --preserve-status 2m cmd", 120.0),
        ("timeout --foreground -- 1d cmd 5", 86400.0),
        ("timeout 0 cmd", 0.0),
        ("timeout --version", None),
        ("timeout soon cmd", None),
        ("bash -c timeout 5", None),
    ],
)
def test_durations(command: str, seconds: float | None) -> None:
    assert duration_of(tuple(command.split())) == seconds


def test_timeout_above_a_start_script(tmp_path) -> None:
    fake = FakeProc(tmp_path)
    fake.add(80, ["timeout", "-k", "10", "30m", "bash", "serve.sh"], start=500)
    fake.add(90, ["bash", "serve.sh"], ppid=80)
    fake.add(100, LAUNCH, ppid=90, environ={"CUDA_VISIBLE_DEVICES": "4,5"})
    server = find(fake.root, Settings()).server
    assert server is not None
    assert (server.kill_pid, server.kill_s) == (80, 1800.0)
    assert server.kill_epoch == BOOT + 500 / os.sysconf("SC_CLK_TCK")
    assert server.visible_devices == "4,5"


def test_nothing_above(tmp_path) -> None:
    fake = FakeProc(tmp_path)
    fake.add(100, LAUNCH)
    server = find(fake.root, Settings()).server
    assert server is not None and server.kill_s is None and server.visible_devices is None
