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
    from types import ModuleType

    import httpx

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
    def base(self) -> str:
        """ "https://[::1]:30000"."""
        if self.uds:
            return f"{'https' if self.secure else 'http'}://localhost"
        return f"{'https' if self.secure else 'http'}://{self.host}:{self.port}"


def health_client(*, asks_once: bool = False) -> HealthClient | PlainClient:
    """The one that is possible here: a collector may be on a machine without httpx. asks_once: the one that costs
    less for a single request (10 ms of CPU to import; httpx 55)."""
    if not asks_once and importlib.util.find_spec("httpx") is not None:
        return HealthClient()
    from sgmon.collect.probes.plain_http import PlainClient

    return PlainClient()


class HealthClient:
    """Keeps one client for TCP, and one for a UNIX socket, without kept connections."""

    def __init__(self) -> None:
        self._clients: dict[str, httpx.Client] = {}

    def open(self, uds: str = "") -> httpx.Client:
        """One client without kept connections, proxies or certificates of the environment. Importing httpx takes
        55 ms of CPU, so not before somebody listens."""
        if uds not in self._clients:
            httpx = _httpx()
            for path in [one for one in self._clients if one and uds]:
                self._clients.pop(path).close()
            limits = httpx.Limits(max_connections=1, max_keepalive_connections=0)
            self._clients[uds] = httpx.Client(
                trust_env=False,
                verify=False,
                follow_redirects=False,
                limits=limits,
                headers={"user-agent": USER_AGENT, "connection": "close"},
                transport=httpx.HTTPTransport(verify=False, limits=limits, uds=uds) if uds else None,
            )
        return self._clients[uds]

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients = {}

    def get(self, target: Target, path: str, limit_s: float, connect_s: float) -> Answer:
        """One GET, its body unread."""
        client = self.open(target.uds)
        import httpx

        connection = _Connection()
        late = threading.Timer(limit_s + connect_s, connection.shut)  # a server may drip one byte a second
        late.daemon = True
        late.start()
        try:
            timeout = httpx.Timeout(limit_s, connect=connect_s)
            url, extensions = f"{target.base}{path}", {"trace": connection.trace}
            with client.stream("GET", url, timeout=timeout, extensions=extensions) as got:
                return Answer("http", got.status_code, connection.client)
        except (httpx.ConnectTimeout, httpx.ReadTimeout) as err:
            answer = "timeout" if isinstance(err, httpx.ConnectTimeout) else "no_response"
            return Answer(answer, client=connection.client)
        except httpx.ConnectError as err:
            return _first_known(err)
        except (httpx.InvalidURL, UnicodeError) as err:
            return Answer("skipped", note=f"the host name cannot be asked: {clean(str(err), 80)}")
        except httpx.TransportError as err:
            if connection.too_late:
                return Answer("no_response", client=connection.client, note="answers byte by byte")
            foreign = isinstance(err, httpx.RemoteProtocolError) and "disconnected" not in str(err)
            note = f"what answers does not speak HTTP: {clean(str(err), 100)}" if foreign else ""
            return Answer("reset", client=connection.client, note=note)
        finally:
            late.cancel()


def _httpx() -> ModuleType:
    """httpx without its command line, as where the extra ``httpx[cli]`` is not installed: click, rich and pygments,
    which that imports, take as long again."""
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    import httpx

    return httpx


class _Connection:
    """What httpx tells of the connection under a request: our own address, and its socket."""

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
