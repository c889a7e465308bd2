"""The HTTP server of ``sgmon export``: metrics and answers from the newest snapshot, nothing else.

It only reads: no request changes what is watched. A client that does not read its answer is dropped after
``CLIENT_S``, and at most ``CLIENTS`` are served at one time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6
from typing import ClassVar
from urllib.parse import urlsplit

import msgspec

from sgmon.export.fleet.answers import CHECKS, HOLD_S, answer
from sgmon.export.fleet.metrics import Metric, metrics
from sgmon.export.json import status_report
from sgmon.model import Snapshot

CLIENT_S = 10.0
CLIENTS = 16

#: (what makes the metrics, the Accept header) -> (body, content type); None: the library for it is not installed
MetricsText = Callable[[Callable[[], "tuple[Metric, ...]"], str], "tuple[bytes, str]"]

_JSON = "application/json; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"


class Newest:
    """The newest snapshot and its age, for any thread."""

    def __init__(self, snapshot: Callable[[], Snapshot], now: Callable[[], float]) -> None:
        """now: seconds on the clock of ``Snapshot.epoch`` plus ``Snapshot.t``."""
        self._snapshot, self._now = snapshot, now

    def look(self) -> tuple[Snapshot, float]:
        """(snapshot, its age in seconds)."""
        snapshot = self._snapshot()
        return snapshot, max(0.0, self._now() - (snapshot.epoch + snapshot.t))


class Reply(msgspec.Struct, frozen=True):
    """An answer to a request, before it is sent."""

    status: int
    body: bytes
    content_type: str = _TEXT


def reply(path: str, accept: str, newest: Newest, text: MetricsText | None, hold_s: float = HOLD_S) -> Reply:
    """What a GET of ``path`` is answered with."""
    name = urlsplit(path).path.strip("/")
    snapshot, age_s = newest.look()
    if name in CHECKS:
        said = answer(name, snapshot, age_s=age_s, hold_s=hold_s)
        return Reply(200 if said.ok else 503, msgspec.json.encode(said) + b"\n", _JSON)
    if name == "status":
        return Reply(200, msgspec.json.encode(status_report(snapshot)) + b"\n", _JSON)
    if name == "metrics" and text is None:
        return Reply(501, b"prometheus-client is not installed. Try: pip install 'sgmon[prometheus]'\n")
    if name == "metrics" and text is not None:
        body, content_type = text(lambda: metrics(snapshot, age_s=age_s), accept)
        return Reply(200, body, content_type)
    if not name:
        return Reply(200, b"sgmon: /metrics /livez /readyz /startupz /status\n")
    return Reply(404, b"not here. Try: /metrics /livez /readyz /startupz /status\n")


class WebServer(ThreadingHTTPServer):
    """Serves in threads of its own inside of ``with``. Raises OSError where the address cannot be had."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 32

    def __init__(self, address: str, port: int, newest: Newest, text: MetricsText | None, hold_s: float) -> None:
        self.address_family = AF_INET6 if ":" in address else AF_INET
        self.newest, self.text, self.hold_s = newest, text, hold_s
        self.slots = threading.BoundedSemaphore(CLIENTS)
        super().__init__((address, port), _Handler)

    def __enter__(self) -> WebServer:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.2}, name="web", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def process_request(self, request: object, client_address: object) -> None:
        """One client more, or none where all places are taken."""
        if self.slots.acquire(blocking=False):
            super().process_request(request, client_address)  # type: ignore[arg-type]
        else:
            self.shutdown_request(request)  # type: ignore[arg-type]

    def process_request_thread(self, request: object, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            self.slots.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away or did not read is no error of ours."""


class _Handler(BaseHTTPRequestHandler):
    server: WebServer
    timeout: ClassVar[float] = CLIENT_S
    server_version = "sgmon"
    sys_version = ""

    def do_GET(self) -> None:
        made = reply(
            self.path, self.headers.get("Accept", ""), self.server.newest, self.server.text, self.server.hold_s
        )
        self._send(made)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, made: Reply) -> None:
        self.send_response(made.status)
        self.send_header("Content-Type", made.content_type)
        self.send_header("Content-Length", str(len(made.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(made.body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the terminal is not for each scrape."""
