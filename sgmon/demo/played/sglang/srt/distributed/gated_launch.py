"""sglang/srt/distributed/gated_launch.py (>= 0.5.20): a wait by design, with a heartbeat every 10 s."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sgmon.demo import console
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.distributed.parallel_state import GroupCoordinator
from sgmon.demo.played.torch.distributed import distributed_c10d as dist

POLL_INTERVAL_SECONDS = 1.0
LOG_INTERVAL_SECONDS = 10.0


class _GatedLaunchServer:
    """GET /health says OK, which means nothing; POST /gate/activate opens the gate."""

    def __init__(self) -> None:
        self.activated = False

    def serve(self, host: str, port: int) -> None:
        gate = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200 if self.path == "/health" else 404)

            def do_POST(self) -> None:
                if self.path == "/gate/activate":
                    gate.activated = True
                self._answer(200 if gate.activated else 404)

            def _answer(self, status: int) -> None:
                body = b"OK"
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                return

        server = ThreadingHTTPServer((host, port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True, name="gated-launch").start()
        console.info(f"Gated launch control server started on {host}:{port}")


def maybe_wait_for_gated_launch(play: Play, group: GroupCoordinator) -> None:
    if not play.gate_port:
        return
    server = _GatedLaunchServer()
    if group.rank == 0:
        server.serve("127.0.0.1", play.gate_port)
    console.info(f"Gated launch waiting for activation. rank={group.rank}")
    began = time.perf_counter()
    _wait_until_activated(group, server)
    console.info(f"Gated launch activated. elapsed={time.perf_counter() - began:.2f} s")


def _wait_until_activated(group: GroupCoordinator, server: _GatedLaunchServer) -> None:
    began = time.perf_counter()
    next_log = began + LOG_INTERVAL_SECONDS
    while True:
        if server.activated:
            dist.broadcast(group.group)
            return
        if group.rank and group.group.upcoming("broadcast"):
            dist.broadcast(group.group)
            return
        now = time.perf_counter()
        if now >= next_log:
            console.info(f"Gated launch still waiting for activation. rank={group.rank} elapsed={now - began:.0f} s")
            next_log = now + LOG_INTERVAL_SECONDS
        time.sleep(POLL_INTERVAL_SECONDS)
