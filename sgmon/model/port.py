"""The HTTP port: who listens, and what /health says."""

from __future__ import annotations

import shlex

from msgspec import Struct

from sgmon.model.verdict import Missing

_CURL = ("curl", "-sS", "-m", "25", "-i")


class Listener(Struct, frozen=True):
    """Who holds the listening socket. ours None: the owner could not be found out (permission)."""

    address: str
    pid: int | None = None
    ours: bool | None = None
    name: str = ""
    accept_queue: int | None = None


class PortReading(Struct, frozen=True):
    """One look at host:port, or at a UNIX socket. port 0: it is not known, as where the server picks it, or where
    nothing tells its arguments (why: ``note``).

    answer: "refused" (nothing listens), "no_response" (accepts, no answer in time), "http" (status set),
    "reset", "timeout" (no connect), "skipped" (not probed: why in ``note``).
    """

    host: str  # as the arguments have it
    port: int
    answer: str
    status: int | None = None
    latency_s: float | None = None
    path: str = "/health"
    listeners: tuple[Listener, ...] = ()
    client: str = ""  # our own address in this request, as the access log shows it
    note: str = ""
    missing: tuple[Missing, ...] = ()
    asked: str = ""  # the address that was asked; "": that of ``host``
    uds: str = ""  # the UNIX socket instead of a port
    secure: bool = False  # asked by TLS

    @property
    def what(self) -> str:
        """ "port 30000", "the UNIX socket /run/v.sock": what is looked at, in words."""
        if self.uds:
            return f"the UNIX socket {self.uds}"
        return f"port {self.port}" if self.port else "the server's port, which is not known"

    @property
    def port_missing(self) -> str:
        """Why there is no number of a port, in words; "" where there is one."""
        if self.uds:
            return "it serves on a UNIX socket"
        return "" if self.port else self.note or "the server's port is not known"

    @property
    def where(self) -> str:
        """ "127.0.0.1:30000", "unix:/run/v.sock": what is asked, as a reader can ask it too."""
        if self.uds:
            return f"unix:{self.uds}"
        bare = (self.asked or self.host).strip("[]")
        host = f"[{bare}]" if ":" in bare else bare
        return f"{host}:{self.port}" if self.port else "a port that is not known"

    @property
    def curl(self) -> str:
        """The command line that asks the same, quoted for a shell: host and path are the server's own words."""
        scheme = "https" if self.secure else "http"
        if self.uds:
            return shlex.join((*_CURL, "--unix-socket", self.uds, f"http://localhost{self.path}"))
        return shlex.join((*_CURL, *(["-k"] if self.secure else []), f"{scheme}://{self.where}{self.path}"))
