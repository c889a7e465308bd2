"""One GET of the health path, over TCP or a UNIX socket; every failure is one of the answers."""

from __future__ import annotations

import importlib.util
import socket
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from sgmon.text import clean

if TYPE_CHECKING:
    import httpcore

    from sgmon.collect.probes.plain_http import PlainClient

USER_AGENT = "sgmon"


class Answer(Struct, frozen=True):
    """What came of one request: the words of ``PortReading.answer``."""

    answer: str
    status: int | None = None
    client: str = ""
    note: str = ""


class Target(NamedTuple):
    """Where to ask. host: an address as a URL has it. uds: the path of a UNIX socket, which is asked in its place."""

    host: str
    port: int
    secure: bool = False
    uds: str = ""

    @property
    def authority(self) -> str:
        """ "[::1]:30000", for the header ``Host``."""
        return "localhost" if self.uds else f"{_ascii(self.host).decode()}:{self.port}"


def health_client(*, asks_once: bool = False) -> HealthClient | PlainClient:
    """The one that is possible here: a collector may be on a machine without httpcore. asks_once: the one that costs
    less for a single request (10 ms of CPU to import; httpcore 20)."""
    if not asks_once and importlib.util.find_spec("httpcore") is not None:
        return HealthClient()
    from sgmon.collect.probes.plain_http import PlainClient

    return PlainClient()


class HealthClient:
    """Keeps one pool for TCP, and one for a UNIX socket, without kept connections. httpcore is the part of httpx that
    speaks HTTP: without the rest a watch takes 4 MiB less."""

    def __init__(self) -> None:
        self._pools: dict[str, httpcore.ConnectionPool] = {}

    def open(self, uds: str = "") -> httpcore.ConnectionPool:
        """One pool. Importing httpcore takes 20 ms of CPU, so not before somebody listens."""
        if uds not in self._pools:
            import ssl

            import httpcore

            for path in [one for one in self._pools if one and uds]:
                self._pools.pop(path).close()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self._pools[uds] = httpcore.ConnectionPool(
                ssl_context=context, max_connections=1, max_keepalive_connections=0, uds=uds or None
            )
        return self._pools[uds]

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
        self._pools = {}

    def get(self, target: Target, path: str, limit_s: float, connect_s: float) -> Answer:
        """One GET, its body unread."""
        pool = self.open(target.uds)
        import httpcore

        connection = _Connection()
        late = threading.Timer(limit_s + connect_s, connection.shut)  # a server may drip one byte a second
        late.daemon = True
        late.start()
        try:
            url, head = _url(target, path), [("host", target.authority), *_HEADERS]
            limits = {"connect": connect_s, "read": limit_s, "write": limit_s, "pool": limit_s}
            extensions = {"timeout": limits, "trace": connection.trace}
            with pool.stream("GET", url, headers=head, extensions=extensions) as got:
                return Answer("http", got.status, connection.client)
        except (httpcore.ConnectTimeout, httpcore.ReadTimeout) as err:
            answer = "timeout" if isinstance(err, httpcore.ConnectTimeout) else "no_response"
            return Answer(answer, client=connection.client)
        except httpcore.ConnectError as err:
            return _first_known(err)
        except (UnicodeError, OverflowError) as err:
            return Answer("skipped", note=f"the host name cannot be asked: {clean(str(err), 80)}")
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as err:
            if connection.too_late:
                return Answer("no_response", client=connection.client, note="answers byte by byte")
            foreign = isinstance(err, httpcore.RemoteProtocolError) and "disconnected" not in str(err)
            note = f"what answers does not speak HTTP: {clean(str(err), 100)}" if foreign else ""
            return Answer("reset", client=connection.client, note=note)
        finally:
            late.cancel()


_HEADERS = (("user-agent", USER_AGENT), ("accept", "*/*"), ("connection", "close"))


def _url(target: Target, path: str) -> httpcore.URL:
    """Raises UnicodeError for a host that is no name."""
    import httpcore

    scheme = b"https" if target.secure else b"http"
    if target.uds:
        return httpcore.URL(scheme=scheme, host=b"localhost", target=path.encode())
    name = _ascii(target.host.strip("[]"))
    return httpcore.URL(scheme=scheme, host=name, port=target.port, target=path.encode())


def _ascii(host: str) -> bytes:
    """Raises UnicodeError."""
    return host.encode("ascii" if host.isascii() else "idna")


class _Connection:
    """What httpcore tells of the connection under a request: our own address, and its socket."""

    def __init__(self) -> None:
        self.client = ""
        self.too_late = False
        self._socket: Any = None

    def trace(self, name: str, info: Mapping[str, Any]) -> None:
        if name not in ("connection.connect_tcp.complete", "connection.connect_unix_socket.complete"):
            return
        stream = info["return_value"]
        address = stream.get_extra_info("client_addr")
        self._socket = stream.get_extra_info("socket")
        if isinstance(address, tuple):
            self.client = f"{address[0]}:{address[1]}"

    def shut(self) -> None:
        """End a request that lasts too long, from another thread."""
        self.too_late = True
        try:
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def speaks_tls(target: Target, connect_s: float) -> bool:
    """Whether a TLS handshake succeeds (a TLS port resets plain HTTP, as a closing server does)."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        plain = socket.create_connection((target.host.strip("[]"), target.port), timeout=connect_s)
        with plain, context.wrap_socket(plain, server_hostname=None):
            return True
    except (OSError, UnicodeError):
        return False


def not_connected(err: BaseException) -> Answer | None:
    """What an error of a connection means; None: not known."""
    if isinstance(err, (ConnectionRefusedError, FileNotFoundError)):
        return Answer("refused")
    ssl = sys.modules.get("ssl")  # who spoke TLS has imported it
    if ssl is not None and isinstance(err, ssl.SSLError):
        return Answer("reset", note=f"no TLS on this port: {clean(err.reason or str(err), 60)}")
    if isinstance(err, ConnectionResetError):
        return Answer("reset")
    if isinstance(err, socket.gaierror):
        return Answer("skipped", note=f"the host name does not resolve: {err.strerror}")
    return None


def _first_known(err: Exception) -> Answer:
    """What the first known error in the chain of causes means."""
    cause: BaseException | None = err
    while cause is not None:
        known = not_connected(cause)
        if known is not None:
            return known
        cause = cause.__cause__ or cause.__context__
    return Answer("skipped", note=clean(str(err), 120))
