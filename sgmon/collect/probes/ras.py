"""The client of NCCL's RAS port: asks what the communicators wait for. Never in the view's way.

An answer can take ten seconds, and a stopped NCCL process swallows every second connection (all
processes listen on the port, the kernel hands connections to each in turn). So the handshake has a
time-out of its own and is tried again; a handshake that is never answered is evidence itself.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from sgmon.analyse.stacks.ras import compared
from sgmon.analyse.stacks.ras_forms import parse
from sgmon.collect.probes.base import Clock, Watched
from sgmon.model import RasReading

DEFAULT_ADDRESS = "localhost:28028"
CONNECT_S = 2.0
HANDSHAKE_S = 1.0
COLLECT_S = 5  # how long NCCL itself may wait for its ranks
ANSWER_S = 12.0
TRIES = 4
MAX_BYTES = 8 * 1024 * 1024
COMPARABLE_S = 120.0

_HELLO = b"CLIENT PROTOCOL 2\n"
_REFUSED = (
    "nobody listens on {address}: no NCCL communicator yet (or no longer), NCCL before 2.24, or NCCL_RAS_ENABLE=0"
)


class _NoResponseError(OSError):
    """Connected, and the handshake was never answered."""


def query(
    address: str,
    *,
    handshake_s: float = HANDSHAKE_S,
    answer_s: float = ANSWER_S,
    tries: int = TRIES,
    now: Callable[[], float] | None = None,
) -> RasReading:
    """Ask the RAS port once. Every failure is a reading: refused, no_response, unreachable or garbled."""
    now = now or Clock().now
    start = now()
    host, port = split_address(address)
    unanswered = connections = 0
    form, reading = "json", RasReading(address, "no_response")
    while connections < tries:
        connections += 1
        try:
            body = _ask(host, port, form, handshake_s, answer_s, now)
        except _NoResponseError:
            unanswered += 1
            continue
        except ConnectionRefusedError:
            reading = RasReading(address, "refused", note=_REFUSED.format(address=address))
            break
        except OSError as err:
            words = f"RAS at {address}: {type(err).__name__}: {err}"
            reading = RasReading(address, "unreachable", note=words)
            break
        if body is None:  # this NCCL knows no formats (before 2.28)
            form = "text"
            continue
        reading = parse(body, address)
        if reading.answer == "garbled" and form == "json":
            form = "text"
            continue
        break
    if reading.answer == "no_response":
        reading = replace(
            reading,
            note=f"RAS at {address} accepts and never answers: the NCCL process that listens is stopped",
            remedy="look for a stopped rank (state T)",
        )
    return replace(reading, connections=connections, unanswered_connections=unanswered, took_s=now() - start)


def split_address(address: str) -> tuple[str, int]:
    """Host and port of NCCL_RAS_ADDR ("localhost:28028", "[::1]:28028", ":28028", "28028")."""
    host, _, port = address.rpartition(":")
    try:
        number = int(port)
    except ValueError:
        host, number = address, 28028
    return host.strip("[]") or "localhost", number


def _ask(
    host: str, port: int, form: str, handshake_s: float, answer_s: float, now: Callable[[], float]
) -> str | None:
    """The body of one status answer; None when the server refuses the JSON format."""
    with socket.create_connection((host, port), CONNECT_S) as connection:
        connection.settimeout(handshake_s)
        connection.sendall(_HELLO)
        try:
            hello = _line(connection)
        except TimeoutError as err:
            raise _NoResponseError from err
        if not hello.startswith(b"SERVER PROTOCOL"):
            raise OSError(f"not a RAS port: it said {hello[:40]!r}")
        connection.settimeout(answer_s)
        connection.sendall(f"TIMEOUT {COLLECT_S}\n".encode())
        _line(connection)
        if form == "json":
            connection.sendall(b"SET FORMAT json\n")
            if not _line(connection).startswith(b"OK"):
                return None
        connection.sendall(b"VERBOSE STATUS\n")
        return _rest(connection, now, now() + answer_s).decode("utf-8", "replace")


def _line(connection: socket.socket) -> bytes:
    got = b""
    while not got.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte or len(got) > 4096:
            break
        got += byte
    return got


def _rest(connection: socket.socket, now: Callable[[], float], end: float) -> bytes:
    """Everything until the server closes, within the time and the size that are sane."""
    parts: list[bytes] = []
    total = 0
    while total < MAX_BYTES:
        connection.settimeout(max(0.01, end - now()))
        part = connection.recv(65536)
        if not part:
            break
        parts.append(part)
        total += len(part)
    return b"".join(parts)


class RasProbe:
    """Asks only while ``enabled`` or when asked by ``request``; two answers in a row are compared."""

    name = "ras"
    kind = "ras"
    interval_s = 5.0
    deadline_s = TRIES * (CONNECT_S + HANDSHAKE_S) + ANSWER_S

    def __init__(self, watched: Watched) -> None:
        self.enabled = False
        self._watched = watched
        self._asked = 0
        self._last: tuple[float, RasReading] | None = None
        self._pid: int | None = None

    def request(self, answers: int = 2) -> None:
        """Ask that many times, an interval apart (two tell "unequal and unchanged")."""
        self._asked = max(self._asked, answers)

    def read(self) -> RasReading | None:
        server = self._watched.server
        if server is None or not (self.enabled or self._asked):
            return None
        self._asked = max(0, self._asked - 1)
        if server.pid != self._pid:
            self._pid, self._last = server.pid, None
        process = Path(self._watched.settings.proc_root) / str(server.pid)
        address = server_address(process)
        if _other_network(process):
            return RasReading(
                address,
                "unreachable",
                note="the server has a network of its own (container), and RAS listens on its localhost",
                remedy="run sgmon inside the container, or with nsenter -n",
            )
        reading = query(address, now=self._watched.clock.now)
        now = self._watched.clock.now()
        if self._last is not None and now - self._last[0] <= COMPARABLE_S:
            reading = compared(reading, self._last[1])
        if reading.answer == "ok":
            self._last = (now, reading)
        return reading

    def close(self) -> None:
        """Nothing is held between readings."""


def server_address(process: Path) -> str:
    """NCCL_RAS_ADDR of the server where its environment may be read, else our own, else the default."""
    try:
        entries = (process / "environ").read_bytes().split(b"\0")
    except OSError:
        entries = []
    for entry in entries:
        if entry.startswith(b"NCCL_RAS_ADDR="):
            return entry[14:].decode("utf-8", "replace") or DEFAULT_ADDRESS
    return os.environ.get("NCCL_RAS_ADDR") or DEFAULT_ADDRESS


def _other_network(process: Path) -> bool:
    try:
        return os.readlink(process / "ns" / "net") != os.readlink("/proc/self/ns/net")
    except OSError:
        return False
