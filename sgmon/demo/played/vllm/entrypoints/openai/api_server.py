"""vllm/entrypoints/openai/api_server.py: the port is bound first and listens last; /health says 200 or 503."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.context import SpawnProcess

from sgmon.demo.play import Play
from sgmon.demo.played.vllm import logger, wording
from sgmon.demo.played.vllm.v1.engine.utils import launch_core_engines


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    play: Play
    engine: SpawnProcess

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path in ("/health", "/ping"):
            self._answer(200 if self.engine.is_alive() else 503)
        elif path == "/v1/models":
            self._answer(200, json.dumps({"object": "list", "data": [{"id": self.play.model_path}]}).encode())
        elif path == "/version":
            self._answer(200, json.dumps({"version": self.play.version}).encode())
        else:
            self._answer(404, b'{"detail":"Not Found"}')

    def _answer(self, status: int, body: bytes = b"") -> None:
        client = f"{self.client_address[0]}:{self.client_address[1]}"
        words = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}[status]
        logger.uvicorn(f'{client} - "{self.requestline}" {status} {words}')
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no event for the log."""


def setup_server(play: Play) -> _Server:
    """Bound, and in no list of listening sockets."""
    server = _Server(("127.0.0.1", play.port), type("Handler", (_Handler,), {"play": play}), bind_and_activate=False)
    server.server_bind()
    return server


async def run_server(play: Play) -> None:
    wording.arguments(play)
    server = setup_server(play)
    play.pause(0.5)
    wording.configuration(play)
    engine = launch_core_engines(play)
    build_app(play)
    await serve_http(server, engine)


def build_app(play: Play) -> None:
    wording.http(play)


async def serve_http(server: _Server, engine: SpawnProcess) -> None:
    server.RequestHandlerClass.engine = engine  # type: ignore[attr-defined]
    pid = os.getpid()
    logger.uvicorn(f"Started server process [{pid}]")
    logger.uvicorn("Waiting for application startup.")
    logger.uvicorn("Application startup complete.")
    server.server_activate()
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    ends = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ends.set)
    await ends.wait()
    for line in ("Shutting down", "Waiting for application shutdown.", "Application shutdown complete."):
        logger.uvicorn(line)
    server.shutdown()
    engine.terminate()
    engine.join()
    logger.uvicorn(f"Finished server process [{pid}]")
