"""Which container a process runs in, and which runtime keeps it: from /proc/PID/cgroup and the process above."""

from __future__ import annotations

from typing import NamedTuple

from sgmon.patterns import regex
from sgmon.proc import fds, files, stat, status

_ID = r"(?P<id>[0-9a-f]{64})"
#: how runtimes name control groups (cgroupfs and systemd drivers)
_GROUPS = (
    ("docker", regex(rf"/docker[-/]{_ID}")),
    ("podman", regex(rf"/libpod-(?!conmon-){_ID}")),
    ("cri-o", regex(rf"[/:]crio[-:](?!conmon-){_ID}")),
    ("containerd", regex(rf"[/:](?:cri-containerd[-:]|nerdctl-|kubepods/(?:\S+/)?pod[^/]+/){_ID}")),
    ("containerd", regex(rf"^/(?:default|k8s\.io)/{_ID}")),
)
_POD = regex(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")
_GENERATIONS = 64  # processes between the server and its container's keeper


class Container(NamedTuple):
    """``keeper`` is the pid of conmon or containerd-shim, which reads the output of the container (None: not seen);
    ``argv`` is its command line, ``below`` its child above the process that was asked for; ``pod`` the uid of a
    Kubernetes pod, "" outside of one."""

    runtime: str  # docker | podman | cri-o | containerd
    id: str
    pod: str = ""
    keeper: int | None = None
    argv: tuple[str, ...] = ()
    below: int = 0

    @property
    def short(self) -> str:
        """The id as the runtimes' own lists show it."""
        return self.id[:12]


def of(root: str, pid: int) -> Container | None:
    """The container of a process; None outside of one, and inside of it, where its control group is "/"."""
    groups = _groups(root, pid)
    pod = next((match[1].replace("_", "-") for match in map(_POD.search, groups) if match), "")
    kept = _keeper(root, pid)
    if kept is not None:
        return kept._replace(pod=pod)
    for runtime, pattern in _GROUPS:
        for group in groups:
            match = pattern.search(group)
            if match:
                return Container(runtime, match["id"], pod)
    return None


def keeps(root: str, container: Container, target: str) -> bool | None:
    """Whether ``target`` (of a link in /proc/PID/fd) is the output of the container's first process: what was started
    by "docker exec" has another one, which no runtime keeps. None: that cannot be seen."""
    first = _first(root, container)
    if first is None:
        return None
    try:
        return target in (fds.link(root, first, 1), fds.link(root, first, 2))
    except OSError:
        return None


def _first(root: str, container: Container) -> int | None:
    """The pid of the container's pid 1: mostly the one through which the keeper was found."""
    if container.keeper is None:
        return None
    for pid in (container.below, *stat.pids(root)):
        try:
            if status.read(root, pid).ns_pids[-1:] == (1,) and stat.read(root, pid).ppid == container.keeper:
                return pid
        except OSError:
            continue
    return None


def _groups(root: str, pid: int) -> list[str]:
    try:
        lines = files.text(f"{root}/{pid}/cgroup").splitlines()
    except OSError:
        return []
    return [line.split(":", 2)[-1] for line in lines]


def _keeper(root: str, pid: int) -> Container | None:
    """From conmon or containerd-shim above the process; their arguments are public."""
    try:
        for _ in range(_GENERATIONS):
            above = stat.read(root, pid).ppid
            if above <= 1:
                return None
            comm = stat.read(root, above).comm
            if comm.startswith(("conmon", "containerd-shim")):
                found = _named(above, comm, stat.cmdline(root, above))
                return found._replace(below=pid) if found is not None else None
            pid = above
    except OSError:
        pass
    return None


def _named(pid: int, comm: str, argv: tuple[str, ...]) -> Container | None:
    if comm.startswith("conmon"):
        name = option(argv, "-c", "--cid")
        runtime = "cri-o" if "crio" in " ".join(argv) else "podman"
    else:
        name = option(argv, "-id", "--id")
        runtime = "docker" if option(argv, "-namespace", "--namespace") == "moby" else "containerd"
    return Container(runtime, name, keeper=pid, argv=argv) if name else None


def option(argv: tuple[str, ...], *names: str) -> str:
    """The last value of an option, given as two words or with "="; "" when it is not given."""
    found = ""
    for at, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in names:
            found = value if equals else (argv[at + 1] if at + 1 < len(argv) else "")
    return found
