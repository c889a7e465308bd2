"""The HTTP port: who listens, and what /health says."""

from __future__ import annotations

from msgspec import Struct

from sgmon.model.verdict import Missing


class Listener(Struct, frozen=True):
    """Who holds the listening socket. ours None: the owner could not be found out (permission)."""

    address: str
    pid: int | None = None
    ours: bool | None = None
    name: str = ""
    accept_queue: int | None = None


class PortReading(Struct, frozen=True):
    """One look at host:port.

    answer: "refused" (nothing listens), "no_response" (accepts, no answer in time), "http" (status set),
    "reset", "timeout" (no connect), "skipped" (not probed: why in ``note``).
    """

    host: str
    port: int
    answer: str
    status: int | None = None
    latency_s: float | None = None
    path: str = "/health"
    listeners: tuple[Listener, ...] = ()
    client: str = ""  # our own address in this request, as the access log shows it
    note: str = ""
    missing: tuple[Missing, ...] = ()
