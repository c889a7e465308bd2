"""The HTTP side: uvicorn's lines and SGLang's answers on a plain standard-library server."""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sgmon.demo import console
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.entrypoints.engine import Engine

#: SGLANG_HEALTH_CHECK_TIMEOUT
_HEALTH_TIMEOUT_S = 20.0
_DEPRECATED = (
    "Endpoint '/get_model_info' is deprecated and will be removed in a future version. "
    "Please use '/model_info' instead."
)
_REASONS = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}


class State:
    """status: Starting, Up, UnHealthy, ShuttingDown."""

    def __init__(self, play: Play, engine: Engine) -> None:
        self.play, self.engine = play, engine
        self.pid = os.getpid()
        self.status = "Starting"
        self._one_at_a_time = threading.Lock()

    def generate(self, timeout_s: float) -> bool:
        """One token from the schedulers; False when none came in time."""
        with self._one_at_a_time:
            pipe = self.engine.pipes[0]
            while pipe.poll(0):
                pipe.recv()
            pipe.send("generate")
            if not pipe.poll(timeout_s):
                return False
            pipe.recv()
            return True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path in ("/health", "/health_generate"):
            self._answer(self._health())
        elif path in ("/model_info", "/get_model_info"):
            if path == "/get_model_info" and self.state.play.release() >= (0, 5, 6):
                console.info(_DEPRECATED)
            model = {"model_path": self.state.play.model_path, "is_generation": True}
            self._answer(200, json.dumps(model).encode())
        elif path in ("/ping", "/ready"):
            self._answer(self._cheap_readiness(path))
        else:
            self._answer(404, b'{"detail":"Not Found"}')

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/generate":
            self._answer(200 if self.state.generate(600.0) else 503, b'{"text": "ok"}')
        else:
            self._answer(200 if self.path == "/freeze_gc" else 404)

    def _health(self) -> int:
        """Generates a token, and looks for it after a second: a 200 takes at least that long."""
        state = self.state
        if state.status == "ShuttingDown":
            console.info("Health check request received during shutdown. Returning 503.")
            return 503
        if state.status == "Starting":
            return 503
        came = state.generate(_HEALTH_TIMEOUT_S)
        state.play.pause(1.0)
        state.status = "Up" if came else "UnHealthy"
        return 200 if came else 503

    def _cheap_readiness(self, path: str) -> int:
        """/ready exists from 0.5.20 on; /ping looks at the state from 0.5.23 on."""
        release = self.state.play.release()
        if path == "/ready" and release < (0, 5, 20):
            return 404
        always = path == "/ping" and release < (0, 5, 23)
        return 200 if always or self.state.status == "Up" else 503

    def _answer(self, status: int, body: bytes = b"") -> None:
        client = f"{self.client_address[0]}:{self.client_address[1]}"
        console.access(client, self.requestline, f"{status} {_REASONS[status]}")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no event for the log."""


class Server:
    """Binds when it is made, like uvicorn at the end of its start."""

    def __init__(self, state: State) -> None:
        handler = type("Handler", (_Handler,), {"state": state})
        self._server = _HTTPServer(("127.0.0.1", state.play.port), handler)

    def run(self) -> None:
        self._server.serve_forever()

    def stop(self) -> None:
        self._server.shutdown()
