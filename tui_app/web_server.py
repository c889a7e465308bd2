"""textual-serve's web server for this machine alone.

Loopback keeps other machines out. The token keeps out other users of this machine, and the check of the origin the
pages of other sites in the same browser: a browser lets any page open a web socket to 127.0.0.1.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.server import Server

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

#: visitors at the same time: each is a process that reads /proc as often as sgmon in a terminal does
MOST_VISITORS = 4
#: how long Ctrl-C waits for visitors
SHUTDOWN_S = 1.0
#: everything comes from this server; frames of other sites do not
_HEADERS = {
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' data:; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class WebServer(Server):
    """The page, and one process for each visitor."""

    def __init__(self, command: str, host: str, port: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        super().__init__(
            command,
            host=host,
            port=port,
            title="sgmon",
            public_url=f"http://{shown}:{port}",
            templates_path=Path(__file__).parent / "web",
        )
        self.token = secrets.token_urlsafe(16)
        self.cookie = f"sgmon-{port}"  # cookies of one host are shared by its ports
        self.address = f"{self.public_url}/?token={self.token}"
        self._visitors = 0

    def serve(self, debug: bool = False) -> None:
        """Serve until SIGINT or SIGTERM; the address is printed when the port is ours. Raises OSError."""
        logging.basicConfig(level="WARNING", format="sgmon: %(message)s")
        web.run_app(
            self._make_app(), host=self.host, port=self.port, print=self._announce, shutdown_timeout=SHUTDOWN_S
        )

    def _announce(self, *_: object) -> None:
        print(f"sgmon: {self.address}  (read-only; Ctrl-C ends it)", flush=True)

    async def on_startup(self, app: web.Application) -> None:
        """Nothing to say yet."""

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guarded)
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse who has no token, and what another site's page asks for."""
        origin = request.headers.get("Origin")
        if not _is_loopback(request.host) or (origin is not None and urlsplit(origin).netloc != request.host):
            raise web.HTTPForbidden(text="sgmon: refused, because another site made this request\n")
        if self._is_token(request.query.get("token", "")) and request.path == "/":
            response = web.HTTPFound("/")  # the token leaves the address line
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict")
            return response
        if not self._is_token(request.cookies.get(self.cookie, "")):
            raise web.HTTPForbidden(text="sgmon: open the address that sgmon serve printed, with its token\n")
        response = await handler(request)
        if not response.prepared:
            response.headers.update(_HEADERS)
        return response

    def _is_token(self, word: str) -> bool:
        return hmac.compare_digest(word.encode(), self.token.encode())

    async def handle_index(self, request: web.Request) -> Any:
        self.public_url = f"http://{request.host}"  # another port than ours behind ssh -L
        return await super().handle_index(request)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        if self._visitors >= MOST_VISITORS:
            raise web.HTTPServiceUnavailable(text=f"sgmon: no room: at most {MOST_VISITORS} pages at the same time\n")
        self._visitors += 1
        try:
            return await super().handle_websocket(request)
        finally:
            self._visitors -= 1


def _is_loopback(host: str) -> bool:
    """Whether a Host header names this machine: another name was made to point here (DNS rebinding)."""
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
