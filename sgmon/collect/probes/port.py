"""The HTTP port: who listens (from /proc), and only then what /health says. One request in flight, and rarely:
each /health makes the server generate a token and write log lines."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from sgmon.collect.probes.base import Watched
from sgmon.collect.probes.listeners import Listeners
from sgmon.collect.probes.netns import InNamespace
from sgmon.model import Listener, PortReading, ServerArgs
from sgmon.servers import registry
from sgmon.text import clean
from sgmon.units import plural

if TYPE_CHECKING:
    import httpx

LOOK_S = 2.0  # nothing listens: /proc only
STARTING_S = 2.5  # any answer but 200
READY_S = 10.0
PAUSE_MOST_S = 30.0  # each unanswered request stays in the accept queue of a server that never accepts
CONNECT_S = 2.0
FIRST_ANSWER_S = 5.0  # /health takes 1.0 s when ready, 2.5 s on a busy machine
ANSWER_S = 22.0  # a ready server whose scheduler hangs says 503 after 20 s
_USER_AGENT = "sgmon"
_AWAY = "the server has a network namespace of its own (a container)"


class _Answer(Struct, frozen=True):
    answer: str
    status: int | None = None
    client: str = ""
    note: str = ""


class PortProbe:
    """One look at host:port. ``interval_s`` follows what was seen last."""

    name = "port"
    kind = "port"
    deadline_s = ANSWER_S + 5.0

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._now = watched.clock.now
        self._listeners = Listeners(watched.settings.proc_root)
        self._client: httpx.Client | None = None
        self._server: tuple[int, int] | None = None
        self._was_ready = False
        self._tls = self._tls_tried = False
        self._unanswered = 0
        self._path = ""
        self.interval_s = LOOK_S

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def read(self) -> PortReading | None:
        server = self._watched.server
        family = registry.get(server.family if server else "")
        port = self._watched.settings.port or (server.port or family.default_port if server else None)
        if port is None:
            return None
        if server is not None and self._watched.settings.port is None and (server.args.headless or server.args.uds):
            return _no_port(server.args)
        identity = server.key if server else None
        if identity != self._server:
            self._server = identity
            self._was_ready = self._tls = self._tls_tried = False
            self._unanswered = 0
        self._path = family.health.path
        args = server.args if server else ServerArgs()
        reading = self._look(server.pid if server else None, args.host, port)
        guessed = server is not None and server.port is None and self._watched.settings.port is None
        if guessed and not any(listener.ours for listener in reading.listeners):
            return None  # who listens on a port that nobody has named is a stranger
        if reading.answer == "":
            reading = self._ask(reading, args, self._namespace(server.pid if server else None))
        self.interval_s = self._next(reading)
        return reading

    def _look(self, pid: int | None, host: str, port: int) -> PortReading:
        """The reading as far as /proc tells it; answer "" when a request is due."""
        blank = PortReading(host=host, port=port, answer="")
        try:
            found = self._listeners.find(pid, _reachable(host), port, self._now())
        except OSError as err:
            blank = replace(blank, note=f"listening sockets cannot be read: {err.strerror}")
            return blank if self._watched.settings.probe_http else replace(blank, answer="skipped")
        reading = replace(blank, listeners=found)
        if not found:
            return replace(reading, answer="refused", note=_AWAY if self._namespace(pid) else "")
        if all(listener.ours is False for listener in found):
            return replace(reading, answer="skipped", note=_taken(found, port))
        if not self._watched.settings.probe_http:
            return replace(reading, answer="skipped", note="asking for its health is switched off")
        return reading

    def _namespace(self, pid: int | None) -> str:
        """The server's network namespace when it is not ours ("" when it is, or cannot be read): 127.0.0.1 is
        another machine's there."""
        path = f"{self._watched.settings.proc_root}/{pid}/ns/net"
        try:
            return path if pid is not None and os.readlink(path) != os.readlink("/proc/self/ns/net") else ""
        except OSError:
            return ""

    def _ask(self, reading: PortReading, args: ServerArgs, namespace: str) -> PortReading:
        self._http()  # importing httpx is no part of the latency
        host, secure = _probe_host(reading.host), args.ssl or self._tls
        if not namespace:
            return self._answered(reading, *self._exchange(host, reading.port, secure))
        reading = replace(reading, note="; ".join(filter(None, (reading.note, _AWAY))))
        try:
            found = InNamespace(namespace, lambda: self._exchange(host, reading.port, secure)).run()
        except OSError as err:
            note = f"{_AWAY}, and sgmon may not enter it ({err.strerror}): run it there, or with sudo"
            return replace(reading, answer="skipped", note=note)
        return self._answered(reading, *found)

    def _answered(self, reading: PortReading, got: _Answer, latency_s: float) -> PortReading:
        """The reading with what came of the request; what the next one depends on is remembered."""
        silent = got.answer in ("no_response", "timeout")
        self._was_ready = self._was_ready or got.status == 200
        self._unanswered = self._unanswered + 1 if silent else 0
        queued = max((listener.accept_queue or 0 for listener in reading.listeners), default=0)
        notes = [
            reading.note,
            got.note,
            "the port speaks TLS, although the arguments do not say so" if self._tls else "",
            f"{plural(queued, 'connection')} not accepted by the server yet" if silent and queued else "",
        ]
        return replace(
            reading,
            answer=got.answer,
            status=got.status,
            latency_s=None if got.answer in ("refused", "skipped") else latency_s,
            client=got.client,
            note="; ".join(filter(None, notes)),
        )

    def _exchange(self, host: str, port: int, secure: bool) -> tuple[_Answer, float]:
        """One request, and a second one when the first shows that the port speaks TLS; the answer's latency."""
        start = self._now()
        got = self._get(host, port, secure)
        if got.answer == "reset" and not got.note and not secure and not self._tls_tried:
            self._tls_tried = True
            self._tls = speaks_tls(host, port)
            if self._tls:
                start = self._now()
                got = self._get(host, port, True)
        return got, self._now() - start

    def _next(self, reading: PortReading) -> float:
        if reading.status == 200:
            return READY_S
        if reading.answer in ("no_response", "timeout"):
            return float(min(FIRST_ANSWER_S * 2 ** (self._unanswered - 1), PAUSE_MOST_S))
        return LOOK_S if reading.answer in ("refused", "skipped") else STARTING_S

    def _get(self, host: str, port: int, secure: bool) -> _Answer:
        """One GET of the health path, its body unread. Every failure is one of the answers."""
        import httpx  # 200-300 ms, so not before somebody listens

        limit_s = ANSWER_S if self._was_ready else FIRST_ANSWER_S
        connection = _Connection()
        url = f"{'https' if secure else 'http'}://{host}:{port}{self._path}"
        late = threading.Timer(limit_s + CONNECT_S, connection.shut)  # a server may drip one byte a second
        late.daemon = True
        late.start()
        try:
            timeout = httpx.Timeout(limit_s, connect=CONNECT_S)
            with self._http().stream("GET", url, timeout=timeout, extensions={"trace": connection.trace}) as got:
                return _Answer("http", got.status_code, connection.client)
        except (httpx.ConnectTimeout, httpx.ReadTimeout) as err:
            answer = "timeout" if isinstance(err, httpx.ConnectTimeout) else "no_response"
            return _Answer(answer, client=connection.client)
        except httpx.ConnectError as err:
            return _no_connection(err)
        except httpx.TransportError as err:
            if connection.too_late:
                return _Answer("no_response", client=connection.client, note="answers byte by byte")
            foreign = isinstance(err, httpx.RemoteProtocolError) and "disconnected" not in str(err)
            note = f"what answers does not speak HTTP: {clean(str(err), 100)}" if foreign else ""
            return _Answer("reset", client=connection.client, note=note)
        finally:
            late.cancel()

    def _http(self) -> httpx.Client:
        """One client without kept connections, proxies or certificates of the environment."""
        if self._client is None:
            import httpx

            self._client = httpx.Client(
                trust_env=False,
                verify=False,
                follow_redirects=False,
                limits=httpx.Limits(max_connections=1, max_keepalive_connections=0),
                headers={"user-agent": _USER_AGENT, "connection": "close"},
            )
        return self._client


class _Connection:
    """What httpx tells of the connection under a request: our own address, and its socket."""

    def __init__(self) -> None:
        self.client = ""
        self.too_late = False
        self._socket: Any = None

    def trace(self, name: str, info: Mapping[str, Any]) -> None:
        if name != "connection.connect_tcp.complete":
            return
        stream = info["return_value"]
        address = stream.get_extra_info("client_addr")
        self._socket = stream.get_extra_info("socket")
        if address:
            self.client = f"{address[0]}:{address[1]}"

    def shut(self) -> None:
        """End a request that lasts too long, from another thread."""
        self.too_late = True
        try:
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def speaks_tls(host: str, port: int) -> bool:
    """Whether a TLS handshake succeeds (a TLS port resets plain HTTP, as a closing server does)."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host.strip("[]"), port), timeout=CONNECT_S) as plain,
            context.wrap_socket(plain, server_hostname=None),
        ):
            return True
    except OSError:
        return False


def _no_connection(err: Exception) -> _Answer:
    import ssl  # httpx has imported it

    cause: BaseException | None = err
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return _Answer("refused")
        if isinstance(cause, ssl.SSLError):
            return _Answer("reset", note=f"no TLS on this port: {clean(cause.reason or str(cause), 60)}")
        if isinstance(cause, ConnectionResetError):
            return _Answer("reset")
        if isinstance(cause, socket.gaierror):
            return _Answer("skipped", note=f"the host name does not resolve: {cause.strerror}")
        cause = cause.__cause__ or cause.__context__
    return _Answer("skipped", note=clean(str(err), 120))


def _probe_host(host: str) -> str:
    """Where to connect to: what listens everywhere is asked on the loopback address."""
    bare = host.strip("[]")
    bare = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(bare, bare)
    return f"[{bare}]" if ":" in bare else bare


def _reachable(host: str) -> frozenset[str]:
    """Local addresses that count as this host; empty: all (a name, which only the resolver knows)."""
    bare = host.strip("[]")
    if bare in ("0.0.0.0", "::", ""):
        return frozenset()
    if bare == "localhost":
        return frozenset({"127.0.0.1", "::1"})
    return frozenset({bare}) if bare.replace(".", "").isdigit() or ":" in bare else frozenset()


def _no_port(args: ServerArgs) -> PortReading | None:
    """Of a server without a TCP port: who listens on the default one is a stranger. None: a node without HTTP."""
    if not args.uds:
        return None
    note = f"it listens on the UNIX socket {args.uds}, which is not asked"
    return PortReading(host=args.uds, port=args.port, answer="skipped", note=note)


def _taken(found: tuple[Listener, ...], port: int) -> str:
    first = found[0]
    who = f"pid {first.pid}" + (f" ({clean(first.name, 60)})" if first.name else "")
    return f"port {port} is held by another process, {who}: not asked"
