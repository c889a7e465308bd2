"""Which dockerd keeps a container: a machine may run several, each with its own containers, files and socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from sgmon.discovery import inner
from sgmon.discovery.containers import Container, option
from sgmon.discovery.inner import Inside
from sgmon.proc import fds, stat
from sgmon.text import without_prefix

ROOT = "/var/lib/docker"
_RUN = "/run/docker"
_CONFIG = "/etc/docker/daemon.json"
_SYSTEM_CONTAINERD = "/run/containerd/containerd.sock"
#: (/proc, container) -> pid of its dockerd, so that not all processes are read each time
_KNOWN: dict[tuple[str, str], int] = {}
_MOST_KNOWN = 64


class Daemon(NamedTuple):
    """``data_root`` is its folder as it sees it itself; ``log`` the container's json file that it has open, or "";
    ``config`` what its configuration file says."""

    pid: int
    argv: tuple[str, ...]
    host: Inside
    data_root: str
    log: str = ""
    config: Mapping[str, object] = MappingProxyType({})

    def folder(self, container: Container) -> str:
        return f"{self.data_root}/containers/{container.id}"


def of(root: str, container: Container) -> Daemon | None:
    """The dockerd that has the container's log open or its folder; else one that uses the containerd above the
    container; else one of which neither can be seen. None: no dockerd runs that could be it."""
    known = _KNOWN.get((root, container.id), 0)
    if known and _comm(root, known) == "dockerd":
        return _daemon(root, known, container)
    found = [_daemon(root, pid, container) for pid in stat.pids(root) if _comm(root, pid) == "dockerd"]
    ranked = [(likely, one) for one in found if (likely := _likely(one, container)) is not None]
    if not ranked:
        return None
    likely, best = max(ranked, key=lambda pair: pair[0])
    if likely:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[root, container.id] = best.pid
    return best


def settings(host: Inside, path: str) -> dict[str, object]:
    """A JSON file of docker's; {} when it cannot be read."""
    try:
        found = json.loads(host.text(path, 1 << 20) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _daemon(root: str, pid: int, container: Container) -> Daemon:
    argv, host = stat.cmdline(root, pid), inner.of(root, pid)
    config = settings(host, option(argv, "--config-file") or _CONFIG)
    data_root = option(argv, "--data-root", "-g", "--graph") or _text(config, "data-root") or ROOT
    return Daemon(pid, argv, host, data_root, _held_log(root, pid, container), config)


def _likely(daemon: Daemon, container: Container) -> int | None:
    """2: it has the container. 1: it uses the containerd that started it. 0: not known. None: it is another's."""
    if daemon.log or daemon.host.listing(daemon.folder(container)):
        return 2
    if daemon.host.listing(f"{daemon.data_root}/containers"):
        return None
    address = _plain(option(container.argv, "-address", "--address"))
    if not address:
        return 0
    given = option(daemon.argv, "--containerd") or _text(daemon.config, "containerd")
    run = option(daemon.argv, "--exec-root") or _text(daemon.config, "exec-root") or _RUN
    own = (given,) if given else (f"{run}/containerd/containerd.sock", _SYSTEM_CONTAINERD)
    return 1 if address in map(_plain, own) else 0


def _text(config: Mapping[str, object], name: str) -> str:
    """A setting; "" when there is none."""
    value = config.get(name)
    return value if isinstance(value, str) else ""


def _plain(socket: str) -> str:
    """/var/run is a link to /run."""
    path = without_prefix(socket, "unix://")
    return without_prefix(path, "/var") if path.startswith("/var/run/") else path


def _comm(root: str, pid: int) -> str:
    try:
        return stat.read(root, pid).comm
    except OSError:
        return ""


def _held_log(root: str, pid: int, container: Container) -> str:
    """The json file of the container that a dockerd has open; "" also where its descriptors are hidden."""
    try:
        targets = fds.read(root, pid).values()
    except OSError:
        return ""
    return next((target for target in targets if target.endswith(f"/{container.id}-json.log")), "")
