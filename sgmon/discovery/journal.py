"""The systemd unit of a process, and the journalctl command that prints its log."""

from __future__ import annotations

import re

from sgmon.proc import files

_SERVICE = re.compile(r"([^/]+\.service)(?:/|$)")
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


def of_unit(name: str, user: bool, since_epoch: float | None) -> tuple[str, ...]:
    """The unit's log from the start of the server on."""
    field = "_SYSTEMD_USER_UNIT" if user else "_SYSTEMD_UNIT"
    since = (f"--since=@{int(since_epoch) - 1}",) if since_epoch is not None else ()
    return (*_FOLLOW, *since, f"{field}={name}")


def of_container(container: str) -> tuple[str, ...]:
    """The log of a container whose runtime writes to journald (docker, podman)."""
    return (*_FOLLOW, f"CONTAINER_ID_FULL={container}")
