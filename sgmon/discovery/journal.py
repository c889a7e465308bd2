"""The systemd unit of a process, and the journalctl command that prints its log."""

from __future__ import annotations

import os

from sgmon.patterns import regex
from sgmon.proc import files

UNITS = "/run/systemd/units"
_RUN = regex(r"[0-9a-f]{32}")
_CLOCK_S = 2.0  # between the start of a process as /proc has it, and the clock of files
_SERVICE = regex(r"([^/]+\.service)(?:/|$)")
#: --all: a field above 4 KB (the server_args line has 19 KB) is null without it (journalctl(1))
_FOLLOW = ("journalctl", "--no-pager", "--follow", "--all", "--no-tail", "--output=json")


def unit(root: str, pid: int) -> tuple[str, bool]:
    """(unit, whether a user's own systemd runs it); ("", False): not a service (a login session, a container)."""
    try:
        lines = files.text(f"{root}/{pid}/cgroup").splitlines()
    except OSError:
        return "", False
    for line in lines:
        _, controller, group = [*line.split(":", 2), "", ""][:3]
        names = _SERVICE.findall(group) if controller in ("", "name=systemd") else []
        if names:
            user = names[0].startswith("user@")
            return (names[1], True) if user and len(names) > 1 else ("" if user else names[0], False)
    return "", False


def unit_within(root: str, pid: int, container: str) -> str:
    """The unit of a systemd that runs in the container of this id; "" without one."""
    try:
        text = files.text(f"{root}/{pid}/cgroup")
    except OSError:
        return ""
    below = (line.partition(container)[2] for line in text.splitlines())
    return next((names[-1] for names in map(_SERVICE.findall, below) if names), "")


def of_unit(name: str, user: bool, since_epoch: float | None) -> tuple[str, ...]:
    """The unit's log from the start of the server on. Where systemd says which run of the unit this is, only lines of
    that one: after a restart the second before the start has the end of the run before."""
    field = "_SYSTEMD_USER_UNIT" if user else "_SYSTEMD_UNIT"
    since = (f"--since=@{int(since_epoch) - 1}",) if since_epoch is not None else ()
    run = "" if user or since_epoch is None else _run_of(name, since_epoch)
    return (*_FOLLOW, *since, *((f"_SYSTEMD_INVOCATION_ID={run}",) if run else ()), f"{field}={name}")


def _run_of(name: str, began_epoch: float) -> str:
    """The invocation id of the run of the unit that began a process; "" when it is not known, or is that of a later
    run. systemd keeps that of the newest run in a link that anybody may read."""
    link = f"{UNITS}/invocation:{name}"
    try:
        made_epoch, run = os.lstat(link).st_mtime, os.readlink(link)
    except OSError:
        return ""
    return run if _RUN.fullmatch(run) and began_epoch >= made_epoch - _CLOCK_S else ""


def of_container(container: str) -> tuple[str, ...]:
    """The log of a container whose runtime writes to journald (docker, podman)."""
    return (*_FOLLOW, f"CONTAINER_ID_FULL={container}")
