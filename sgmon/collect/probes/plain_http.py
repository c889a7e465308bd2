"""The health request by the standard library alone: for a collector on a machine that has no httpx."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading

from sgmon.collect.probes.health_request import USER_AGENT, Answer, Target, not_connected
from sgmon.text import clean


class PlainClient:
    """The face of ``HealthClient``; keeps nothing open."""

    def open(self, uds: str = "") -> None:
        """There is nothing to prepare."""

    def close(self) -> None:
        """Nothing is kept."""

    def get(self, target: Target, path: str, limit_s: float, connect_s: float) -> Answer:
        """One GET, its body unread."""
        try:
            connection = _connection(target, connect_s)
            connection.connect()
        except (http.client.InvalidURL, UnicodeError) as err:
            return Answer("skipped", note=f"the host name cannot be asked: {clean(str(err), 80)}")
        except OSError as err:
            return _refusal(err)
        address = connection.sock.getsockname()
        client = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else ""
        guard = _Guard(connection.sock, limit_s + connect_s)
        try:
            connection.sock.settimeout(limit_s)
            connection.request("GET", path, headers={"User-Agent": USER_AGENT, "Connection": "close"})
            return Answer("http", connection.getresponse().status, client)
        except TimeoutError:
            return Answer("no_response", client=client)
        except (OSError, http.client.HTTPException) as err:
            if guard.too_late:
                return Answer("no_response", client=client, note="answers byte by byte")
            foreign = isinstance(err, http.client.HTTPException) and not isinstance(err, ConnectionError)
            note = f"what answers does not speak HTTP: {clean(str(err), 100)}" if foreign else ""
            return Answer("reset", client=client, note=note)
        finally:
            guard.cancel()
            connection.close()


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a UNIX socket."""

    def __init__(self, path: str, connect_s: float) -> None:
        super().__init__("localhost", timeout=connect_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class _Guard:
    """Ends a request that lasts too long, however it drips."""

    def __init__(self, sock: socket.socket, limit_s: float) -> None:
        self.too_late = False
        self._sock = sock
        self._timer = threading.Timer(limit_s, self._shut)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()

    def _shut(self) -> None:
        self.too_late = True
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def _connection(target: Target, connect_s: float) -> http.client.HTTPConnection:
    if target.uds:
        return _UnixConnection(target.uds, connect_s)
    host = target.host.strip("[]")
    if not target.secure:
        return http.client.HTTPConnection(host, target.port, timeout=connect_s)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(host, target.port, timeout=connect_s, context=context)


def _refusal(err: OSError) -> Answer:
    known = not_connected(err)
    if known is None and isinstance(err, socket.timeout):
        return Answer("timeout")
    return known or Answer("skipped", note=clean(str(err), 120))
