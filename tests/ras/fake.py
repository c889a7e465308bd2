"""A RAS port for tests: answers as NCCL 2.28.9 did, or as an older one, or as a stopped process (not at all)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

DATA = Path(__file__).parent / "data"


class FakeRas:
    """Listens on a free port. ``script``: what each connection in turn gets: a body, "no_response" or "hello-only"."""

    def __init__(self, json_body: str, text_body: str = "", script: Sequence[str] = (), old: bool = False) -> None:
        self.json_body, self.text_body = json_body, text_body
        self.script = list(script)
        self.old = old
        self.commands: list[str] = []
        self.connections = 0
        self._held: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for held in self._held:
            held.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            mode = self.script.pop(0) if self.script else "answer"
            if mode == "no_response":
                self._held.append(connection)
                continue
            with connection:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        body, wanted = self.text_body, connection.makefile("r")
        for line in wanted:
            command = line.strip()
            self.commands.append(command)
            if command.startswith("CLIENT PROTOCOL"):
                connection.sendall(b"SERVER PROTOCOL 2\n")
            elif command.startswith("TIMEOUT"):
                connection.sendall(b"OK\n")
            elif command == "SET FORMAT json":
                if self.old:
                    connection.sendall(b"ERROR: Unknown command\n")
                    return
                body = self.json_body
                connection.sendall(b"OK\n")
            elif command == "VERBOSE STATUS":
                connection.sendall(body.encode())
                return


def data(name: str) -> str:
    return (DATA / name).read_text()


@contextmanager
def ras(json_name: str = "equal.json", text_name: str = "equal.txt", **options: object) -> Iterator[FakeRas]:
    server = FakeRas(data(json_name), data(text_name), **options)  # type: ignore[arg-type]
    try:
        yield server
    finally:
        server.close()
