"""Where a container's runtime puts its output: a file that can be followed, or the command that prints it."""

from __future__ import annotations

import fnmatch
import os
import shlex
from collections.abc import Iterator

from sgmon.discovery import docker_daemons, inner, journal
from sgmon.discovery.containers import Container, option
from sgmon.discovery.docker_daemons import Daemon
from sgmon.discovery.inner import Inside
from sgmon.discovery.logtarget import TAIL_LINES, LogTarget, by_command, by_hand, unread
from sgmon.text import without_prefix

_DOCKER_SOCKET = "/var/run/docker.sock"
_SUDO = "run sgmon with sudo, or: "


def find(root: str, container: Container, source: str) -> LogTarget:
    """``source`` says how the container was reached ("fd 2 of pid 7 -> pipe"); the answer's goes on from there."""
    source = f"{source} -> {container.runtime} container {container.short}"
    if container.runtime == "docker":
        return _docker(root, container, source)
    if container.runtime == "podman":
        return _podman(root, container, source)
    return _cri(root, container, source)


# docker


def _docker(root: str, container: Container, source: str) -> LogTarget:
    """json-file: the file that dockerd has open. journald: the journal. Other drivers: docker logs can read the
    local driver, and a copy that dockerd keeps of what it sends elsewhere ("dual logging", since 20.10)."""
    daemon = docker_daemons.of(root, container) or Daemon(1, (), inner.of(root, 1), docker_daemons.ROOT)
    folder = daemon.folder(container)
    driver = "json-file" if daemon.log else _driver(daemon.host, folder)
    source += f" ({driver})" if driver else ""
    if driver == "journald":
        return by_command(journal.of_container(container.id), source)
    if driver == "none":
        why = "docker keeps no log of this container (its log driver is none)"
        return unread("pipe", source, why, "start it with --log-driver json-file")
    path = daemon.log or f"{folder}/{container.id}-json.log"
    if driver in ("json-file", "") and os.access(daemon.host.reach(path), os.R_OK):
        return _file(daemon.host, path, source)
    return _docker_logs(daemon.host, daemon.argv, container, source)


def _docker_logs(host: Inside, argv: tuple[str, ...], container: Container, source: str) -> LogTarget:
    address = next((w for w in (option(argv, "-H", "--host"), os.environ.get("DOCKER_HOST", "")) if ":/" in w), "")
    socket = without_prefix(address, "unix://") or _DOCKER_SOCKET
    other = ("--host", address) if address.startswith("unix://") and socket != _DOCKER_SOCKET else ()
    command = ("docker", *other, "logs", "--follow", "--tail", TAIL_LINES, container.id)
    if socket.startswith("/") and not os.access(host.reach(socket), os.W_OK):
        why = "docker keeps the log, and this user may ask neither its files nor its daemon"
        asked = shlex.join(("sudo", *command[:-1], container.short))
        return unread("pipe", source, why, f"{_SUDO}{by_hand(asked)}")
    return by_command(command, source)


def _driver(host: Inside, folder: str) -> str:
    """The log driver of the container; "" when it cannot be read."""
    config = docker_daemons.settings(host, f"{folder}/hostconfig.json").get("LogConfig")
    name = config.get("Type") if isinstance(config, dict) else ""
    return name if isinstance(name, str) else ""


# podman


def _podman(root: str, container: Container, source: str) -> LogTarget:
    """conmon writes the log, and its arguments say where (-l DRIVER:PATH)."""
    command = ("podman", "logs", "--follow", "--tail", TAIL_LINES, container.id)
    if container.keeper is None:
        return by_command(command, source)
    driver, path = _conmon_log(container.argv)
    source += f" ({driver})"
    if driver == "journald":
        return by_command(journal.of_container(container.id), source)
    if not path:
        why = f"podman keeps no log of this container (its log driver is {driver})"
        return unread("pipe", source, why, "start it with --log-driver k8s-file")
    return _readable(
        inner.of(root, container.keeper), path, source, shlex.join(("sudo", *command[:-1], container.short))
    )


def _conmon_log(argv: tuple[str, ...]) -> tuple[str, str]:
    """(driver, path) from conmon's ``-l DRIVER:PATH``, or ``-l PATH`` (conmon(8)); the last one that has a path."""
    driver, path = "none", ""
    for at, word in enumerate(argv[:-1]):
        if word not in ("-l", "--log-path"):
            continue
        name, colon, place = argv[at + 1].partition(":")
        if argv[at + 1].startswith("/"):
            return "k8s-file", argv[at + 1]
        if colon and place and name in ("k8s-file", "json-file"):
            return name, place
        driver = name or driver
    return driver, path


# Kubernetes: containerd and CRI-O


def _cri(root: str, container: Container, source: str) -> LogTarget:
    """The kubelet's /var/log/containers/POD_NAMESPACE_NAME-ID.log, which links to /var/log/pods/..."""
    keeper = container.keeper or 1
    host = inner.of(root, keeper)
    if container.runtime == "cri-o" and container.argv:
        driver, path = _conmon_log(container.argv)
        if path:
            return _readable(host, path, f"{source} ({driver})", f"sudo crictl logs -f {container.short}")
    names = fnmatch.filter(host.listing("/var/log/containers"), f"*-{container.id}.log")
    if names:
        path = host.real(f"/var/log/containers/{names[0]}")
        return _readable(host, path, source, _kubectl(names[0]))
    found = list(_of_pod(host, container)) + list(_nerdctl(host, container))
    if len(found) == 1:
        return _readable(host, found[0], source, f"sudo crictl logs -f {container.short}")
    which = f"it is one of {', '.join(found[:4])}" if found else "its file was not found below /var/log/pods"
    first = f"give it with --log, or: {by_hand(f'sudo crictl logs -f {container.short}')}"
    return unread("pipe", source, which, first)


def _kubectl(name: str) -> str:
    """The command of a person without the node, from POD_NAMESPACE_CONTAINER-ID.log."""
    pod, namespace, rest = [*name.split("_", 2), "", ""][:3]
    return shlex.join(("kubectl", "logs", "-f", "-n", namespace, pod, "-c", rest.rpartition("-")[0]))


def _of_pod(host: Inside, container: Container) -> Iterator[str]:
    """The newest log of each container of the pod: /var/log/pods/NAMESPACE_POD_UID/CONTAINER/RESTARTS.log."""
    folders = fnmatch.filter(host.listing("/var/log/pods"), f"*_{container.pod}") if container.pod else []
    for folder in folders:
        for name in host.listing(f"/var/log/pods/{folder}"):
            logs = fnmatch.filter(host.listing(f"/var/log/pods/{folder}/{name}"), "[0-9]*.log")
            if logs:
                yield f"/var/log/pods/{folder}/{name}/{max(logs, key=lambda log: (len(log), log))}"


def _nerdctl(host: Inside, container: Container) -> Iterator[str]:
    """nerdctl's json-file: /var/lib/nerdctl/HASH/containers/NAMESPACE/ID/ID-json.log."""
    for store in host.listing("/var/lib/nerdctl"):
        for namespace in host.listing(f"/var/lib/nerdctl/{store}/containers"):
            path = f"/var/lib/nerdctl/{store}/containers/{namespace}/{container.id}/{container.id}-json.log"
            if host.has(path):
                yield path


# all


def _file(host: Inside, path: str, source: str) -> LogTarget:
    return LogTarget(host.reach(path), "file", source, path if host.prefix else "")


def _readable(host: Inside, path: str, source: str, command: str) -> LogTarget:
    """The file, or, for a user who may not read it, the command that asks the runtime for it."""
    here = host.reach(path)
    if os.access(here, os.R_OK) or not _denied(here):
        return _file(host, path, source)
    return unread("pipe", source, f"this user may not read {path}", f"{_SUDO}{by_hand(command)}")


def _denied(path: str) -> bool:
    """Whether rights are what is missing, not the file."""
    try:
        os.stat(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
