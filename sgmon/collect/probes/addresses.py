"""Where a server is asked: the address that its socket has, and the port that it picked itself."""

from __future__ import annotations

from collections.abc import Sequence

from sgmon.collect.probes.listeners import WILDCARDS, Listeners
from sgmon.model import Listener
from sgmon.proc import files

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}
#: uvicorn asks for a queue of 2048, ZeroMQ for one of 100; the kernel cuts both to its own limit
_HTTP_BACKLOG = 1024

#: why the number of a port is not in the arguments, as the beginning of a sentence
PICKS = "the server picks its port (--port 0)"
UNTOLD = "the server's port is not known, as its arguments are not"


def asked_host(host: str, listeners: Sequence[Listener]) -> str:
    """The address to connect to, as a URL has it: that of the server's own socket, else of the first, else ``host``;
    what listens everywhere is asked on the loopback address of its family."""
    best = next((one for one in listeners if one.ours), listeners[0] if listeners else None)
    bare = (host if best is None else best.address.rpartition(":")[0]).strip("[]")
    bare = _LOOPBACK.get(bare, bare)
    return f"[{bare}]" if ":" in bare else bare


def reachable(host: str) -> frozenset[str]:
    """Local addresses that count as this host; empty: all (a name, which only the resolver knows)."""
    bare = host.strip("[]")
    if bare in (*WILDCARDS, ""):
        return frozenset()
    if bare == "localhost":
        return frozenset({"127.0.0.1", "::1"})
    return frozenset({bare}) if bare.replace(".", "").isdigit() or ":" in bare else frozenset()


class PickedPort:
    """The port of a server that picks it itself (``--port 0``), or whose arguments are not known, from the sockets on
    which its launcher listens.

    Its other sockets (ZeroMQ) have a short accept queue. Nothing is asked to find out, because not every socket bears
    a request. Once found, the port stays.
    """

    def __init__(self, root: str, listeners: Listeners) -> None:
        self._root = root
        self._listeners = listeners
        self._server: tuple[int, int] | None = None
        self._port: int | None = None

    def find(self, server: tuple[int, int], host: str, why: str = PICKS) -> tuple[int | None, str]:
        """The port, or None and why it is not known. server: pid and start; why: why its arguments do not tell it.
        Raises OSError where nothing can be read."""
        if server != self._server:
            self._server, self._port = server, None
        if self._port is not None:
            return self._port, ""
        rows = self._listeners.held_by(server[0], reachable(host))
        least = min(_HTTP_BACKLOG, self._somaxconn())
        ports = sorted(
            {int(row.local.rpartition(":")[2]) for row in rows if row.backlog is None or row.backlog >= least}
        )
        if len(ports) == 1:
            self._port = ports[0]
            return self._port, ""
        if not ports:
            return None, f"{why}, and its launcher listens on none: nothing to ask yet"
        named = ", ".join(str(port) for port in ports[:5])
        return None, f"{why}, and its launcher listens on several: {named}; name it with --port"

    def _somaxconn(self) -> int:
        try:
            return int(files.text(f"{self._root}/sys/net/core/somaxconn"))
        except (OSError, ValueError):
            return _HTTP_BACKLOG
