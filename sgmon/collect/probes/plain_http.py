"""The health request by the standard library alone: for one look, and for a collector on a machine without httpx."""

from __future__ import annotations

import socket
import threading

from sgmon.collect.probes.health_request import USER_AGENT, Answer, Target, not_connected
from sgmon.imports import without
from sgmon.text import clean

with without("ssl"):  # 4.5 MiB and 8 ms, for its own HTTPSConnection alone; who speaks TLS here imports it then
    import http.client

_DRIPS = "answers byte by byte"


class PlainClient:
    """The face of ``HealthClient``; keeps nothing open."""

    def open(self, uds: str = "") -> None:
        """There is nothing to prepare."""

    def close(self) -> None:
        """Nothing is kept."""

    def get(self, target: Target, path: str, limit_s: float, connect_s: float) -> Answer:
        """One GET, its body unread."""
        try:
            connection = _Connection(target, connect_s)
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
            got = connection.getresponse()
            while 101 < got.status < 200:  # an interim answer: the next one follows
                got.headers = None  # type: ignore[assignment]  # begin() does nothing else
                got.begin()
            if guard.too_late:  # what came until then was taken for the whole head
                return Answer("no_response", client=client, note=_DRIPS)
            return Answer("http", got.status, client)
        except TimeoutError:
            return Answer("no_response", client=client)
        except (OSError, http.client.HTTPException) as err:
            if guard.too_late:
                return Answer("no_response", client=client, note=_DRIPS)
            foreign = isinstance(err, http.client.HTTPException) and not isinstance(err, ConnectionError)
            note = f"what answers does not speak HTTP: {clean(str(err), 100)}" if foreign else ""
            return Answer("reset", client=client, note=note)
        finally:
            guard.cancel()
            connection.close()


class _Connection(http.client.HTTPConnection):
    """HTTP over TCP or a UNIX socket, in TLS where the target says so; certificates are not looked at."""

    def __init__(self, target: Target, connect_s: float) -> None:
        super().__init__("localhost" if target.uds else target.host.strip("[]"), target.port, timeout=connect_s)
        self._target = target

    def connect(self) -> None:
        """Raises OSError; what TLS says against it is one, too."""
        if self._target.uds:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(self.timeout)
            self.sock.connect(self._target.uds)
        else:
            super().connect()
        if self._target.secure:
            import ssl

            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.sock = context.wrap_socket(self.sock, server_hostname=self.host)


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


def _refusal(err: OSError) -> Answer:
    known = not_connected(err)
    if known is None and isinstance(err, socket.timeout):
        return Answer("timeout")
    return known or Answer("skipped", note=clean(str(err), 120))
