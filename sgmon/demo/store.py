"""The meeting point of the ranks over real TCP, as torch's TCPStore is: rank 0 listens, every rank connects.

One line a message. To the server: ``join``, ``count``, ``arrive NAME``. From it: a number, ``hint NAME`` when
somebody has arrived first, ``go NAME`` when all have.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import defaultdict


class StoreServer:
    """Counts arrivals; lives in rank 0. One daemon thread a connection."""

    def __init__(self, port: int, world: int) -> None:
        self._world = world
        self._joined = 0
        self._arrived: defaultdict[str, int] = defaultdict(int)
        self._peers: list[socket.socket] = []
        self._lock = threading.Lock()
        self._socket = socket.create_server(("", port), backlog=128)
        threading.Thread(target=self._accept, daemon=True, name="pt_tcpstore").start()

    def _accept(self) -> None:
        while True:
            peer, _address = self._socket.accept()
            with self._lock:
                self._peers.append(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True, name="pt_tcpstore").start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, peer.makefile("r") as lines:
            try:
                for line in lines:
                    self._answer(peer, line.split())
            except OSError:
                return

    def _answer(self, peer: socket.socket, words: list[str]) -> None:
        with self._lock:
            if words[0] == "arrive":
                self._arrive(words[1])
                return
            if words[0] == "join":
                self._joined += 1
            peer.sendall(f"{self._joined:<90}\n".encode())

    def _arrive(self, name: str) -> None:
        self._arrived[name] += 1
        if self._arrived[name] == self._world:
            self._tell(f"go {name}\n")
        elif self._arrived[name] == 1:
            self._tell(f"hint {name}\n")

    def _tell(self, message: str) -> None:
        for peer in self._peers:
            try:
                peer.sendall(message.encode())
            except OSError:
                continue


class StoreClient:
    """One rank's connection. After ``listen`` a thread of its own opens the gates of collectives."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = _connect(host, port)
        self._unread = b""
        self._gates: defaultdict[str, threading.Lock] = defaultdict(_closed_gate)
        self._gates_lock = threading.Lock()
        self.hints: set[str] = set()

    def ask(self, word: str) -> int:
        """Before ``listen`` only. With read and write, which /proc/PID/io counts, and sizes as TCPStore's:
        3.4 kB read and 0.9 kB written a second by a rank that polls (recorded)."""
        os.write(self._socket.fileno(), f"{word:<24}\n".encode())
        while True:
            words = self._read_line().split()
            if words[0] != "hint":
                return int(words[0])
            self.hints.add(words[1])

    def wait(self, name: str) -> None:
        """Arrive and wait in the calling thread, in recv; before ``listen`` only."""
        self._socket.sendall(f"arrive {name}\n".encode())
        while self._read_line().split() != ["go", name]:
            pass

    def listen(self) -> None:
        threading.Thread(target=self._receive, daemon=True, name="pt_gloo_runner").start()

    def arrive(self, name: str) -> threading.Lock:
        """Say that this rank is there; the returned lock opens when all are."""
        gate = self._gate(name)
        self._socket.sendall(f"arrive {name}\n".encode())
        return gate

    def _gate(self, name: str) -> threading.Lock:
        with self._gates_lock:
            return self._gates[name]

    def _read_line(self) -> str:
        """ "" when rank 0 is gone."""
        while b"\n" not in self._unread:
            more = os.read(self._socket.fileno(), 4096)
            if not more:
                return ""
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def _receive(self) -> None:
        while line := self._read_line():
            word, name = line.split()
            if word == "go":
                self._gate(name).release()
            else:
                self.hints.add(name)


def _closed_gate() -> threading.Lock:
    gate = threading.Lock()
    gate.acquire()
    return gate


def _connect(host: str, port: int, tries: int = 600) -> socket.socket:
    for _ in range(tries):
        try:
            return socket.create_connection((host, port))
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise TimeoutError(f"nobody listens on {host}:{port}")
