"""What sgmon can see of a server that runs: its Python, its container, its user, its environment."""

from __future__ import annotations

import os

from sgmon.doctor.check import Check
from sgmon.model import Server
from sgmon.patterns import regex

GROUP = "the server"
#: newest Python that py-spy 0.4 reads for sure
KNOWN_PYTHON = (3, 13)
_PYTHON = regex(r"python3\.(\d+)")
_CONTAINER = regex(r"(docker|containerd|crio|libpod|kubepods)\b.*?([0-9a-f]{12})[0-9a-f]{52}|(kubepods|docker|lxc)")
_SPACES = (
    ("pid", "pids differ inside: sgmon shows those of this side"),
    ("mnt", "its files are read through /proc/PID/root"),
    ("net", "its port is asked in its network namespace, which needs root here"),
)


def server_checks(root: str, server: Server) -> list[Check]:
    """All checks of this group."""
    return [_python(root, server), _container(root, server), _readable(root, server)]


def _python(root: str, server: Server) -> Check:
    """py-spy must know the interpreter's memory layout, which changes with each minor version."""
    minor = next((int(found[1]) for text in _hints(root, server) if (found := _PYTHON.search(text))), None)
    if minor is None:
        return Check(GROUP, "its Python", "unknown", f"pid {server.pid}: the version could not be read")
    if (3, minor) > KNOWN_PYTHON:
        words = f"3.{minor}: newer than what py-spy 0.4 is known to read"
        return Check(GROUP, "its Python", "note", words, "pip install -U py-spy, then try: sgmon stacks")
    return Check(GROUP, "its Python", "ok", f"3.{minor}: py-spy can read it")


def _hints(root: str, server: Server) -> list[str]:
    texts = [server.site_packages, *server.argv[:1]]
    try:
        texts.insert(0, os.readlink(f"{root}/{server.pid}/exe"))
    except OSError:
        pass
    return texts


def _container(root: str, server: Server) -> Check:
    other = [(name, words) for name, words in _SPACES if _differs(root, server.pid, name)]
    where = _container_name(root, server.pid)
    if not other:
        return Check(GROUP, "container", "ok", "the same as sgmon's" + (f" ({where})" if where else ""))
    words = f"another one{f' ({where})' if where else ''}: " + "; ".join(words for _, words in other)
    ident = where.split(" ")[-1] if " " in where else ""
    inside = f"docker exec {ident} sgmon" if ident and "docker" in where else "sgmon inside of it (kubectl exec)"
    return Check(GROUP, "container", "note", words, f"if something is hidden: sudo sgmon here, or {inside}")


def _differs(root: str, pid: int, name: str) -> bool:
    try:
        return os.readlink(f"{root}/{pid}/ns/{name}") != os.readlink(f"{root}/self/ns/{name}")
    except OSError:
        return False


def _container_name(root: str, pid: int) -> str:
    """ "docker 0123456789ab", "kubepods", or "" for a bare process."""
    try:
        with open(f"{root}/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
            found = _CONTAINER.search(file.read())
    except OSError:
        return ""
    return "" if found is None else f"{found[1]} {found[2]}" if found[2] else found[3]


def _readable(root: str, server: Server) -> Check:
    hidden = [
        name for name in ("fd", "maps", "environ", "io") if not os.access(f"{root}/{server.pid}/{name}", os.R_OK)
    ]
    if not hidden:
        return Check(GROUP, "its /proc", "ok", f"pid {server.pid}: descriptors, maps, environment and counters")
    words = f"pid {server.pid}: {', '.join(hidden)} hidden (another user, or it has more rights)"
    return Check(GROUP, "its /proc", "bad", words, "run sgmon as the server's user or with sudo")
