"""Workers that Ray starts: children of a raylet, joined to their server by the files of the Ray session.

A driver (who called ``ray.init``: the launcher, an engine core) keeps SESSION/logs/python-core-driver-JOB..._PID.log
open. A worker prints into SESSION/logs/worker-ID-JOB-PID.out and .err; JOB is ffffffff where the process was started
before there was work for it. Seen with Ray 2.60.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from sgmon.patterns import regex
from sgmon.proc import fds

RAYLET = "raylet"
_DRIVER_LOG = regex(r"^(?P<logs>/.+/logs)/python-core-driver-(?P<job>[0-9a-f]{8})[0-9a-f]*_(?P<pid>\d+)\.log$")
_WORKER_LOG = regex(r"^(?P<logs>/.+/logs)/worker-[0-9a-f]+-(?P<job>[0-9a-f]{8})-\d+\.(?:out|err)$")
_NO_JOB = "ffffffff"


class Driver(NamedTuple):
    """What a server is to its Ray session. alone: no other driver of the session lives on this host."""

    logs: str
    job: str
    alone: bool


def is_raylet(argv: tuple[str, ...]) -> bool:
    """Whether this is the process that starts Ray's workers on a host. A driver without a cluster starts its own."""
    return bool(argv) and argv[0].endswith(f"/{RAYLET}")


def driver_among(root: str, pids: Iterable[int]) -> Driver | None:
    """The driver that one of these processes is; None: none of them, or their descriptors may not be read."""
    for pid in pids:
        for target in _targets(root, pid):
            found = _DRIVER_LOG.match(target)
            if found is not None:
                return Driver(found["logs"], found["job"], _is_alone(f"{root}/{pid}/root{found['logs']}", root, pid))
    return None


def works_for(root: str, pid: int, driver: Driver) -> bool:
    """Whether this child of a raylet works for the driver, so far as can be told: of several drivers in a session,
    the process's own job decides."""
    for target in _targets(root, pid):
        found = _WORKER_LOG.match(target)
        if found is not None and found["logs"] == driver.logs:
            return found["job"] == driver.job or (found["job"] == _NO_JOB and driver.alone)
    return False


def _is_alone(logs: str, root: str, pid: int) -> bool:
    try:
        names = os.listdir(logs)
    except OSError:
        return False
    drivers = {int(found["pid"]) for name in names if (found := _DRIVER_LOG.match(f"/x/logs/{name}"))}
    return not any(os.path.exists(f"{root}/{other}") for other in drivers - {pid})


def _targets(root: str, pid: int) -> list[str]:
    try:
        return list(fds.read(root, pid).values())
    except OSError:
        return []
