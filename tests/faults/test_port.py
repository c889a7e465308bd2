"""Ports that are mute, slow, endless, somebody else's: what is not answered is unknown, and never ready."""

from __future__ import annotations

import os
import socket
import socketserver
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sgmon.collect.probes import port as port_module
from sgmon.settings import Settings
from tests.faults.screen import Screen
from tests.faults.watching import Watch, watching
from tests.faults.world import LAUNCHER, TP0, TP1, World

Serve = Callable[[socket.socket], None]
GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are awaited for a part of a second, and asked for again at once."""
    for name in ("FIRST_ANSWER_S", "CONNECT_S", "ANSWER_S"):
        monkeypatch.setattr(port_module, name, 0.4)
    for name in ("LOOK_S", "STARTING_S", "READY_S"):
        monkeypatch.setattr(port_module, name, 0.2)


@contextmanager
def answering(serve: Serve, family: int = socket.AF_INET, address: object = ("127.0.0.1", 0)) -> Iterator[int]:
    """The port of a server whose connections ``serve`` gets, each in a thread."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                serve(self.request)
            except OSError:
                pass

    class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
        daemon_threads = True
        allow_reuse_address = True
        block_on_close = False

        def handle_error(self, request: object, client: object) -> None:
            pass

    Server.address_family = family
    server = Server(address, Handler)  # type: ignore[arg-type]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server.server_address[1]  # type: ignore[misc]
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def asking(world: World, screen: Screen, serve: Serve) -> Iterator[Watch]:
    """A watch of a server whose port answers so."""
    with answering(serve) as port:
        world.listens(port)
        with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as watch:
            yield watch


def request(sock: socket.socket) -> bytes:
    return sock.recv(65536)


def hold(sock: socket.socket) -> None:
    """Say nothing until the other side gives up."""
    while sock.recv(65536):
        pass


def answered(json: dict) -> bool:
    return bool(json["port"]) and json["port"]["answer"] not in ("", "refused")


def answers(watch: Watch, answer: str, status: int | None) -> None:
    """Until it is this; on a loaded machine the first requests may find nobody in time."""
    watch.until(lambda json: answered(json) and (json["port"]["answer"], json["port"]["status"]) == (answer, status))


def is_not_ready(watch: Watch) -> None:
    assert watch.json["state"] not in ("ready", "crashed"), watch.json["headline"]


def test_mute(world: World, screen: Screen) -> None:
    with asking(world, screen, hold) as watch:
        answers(watch, "no_response", None)
        is_not_ready(watch)
        watch.shows("accepts, no answer in")


def test_it_closes_without_a_word(world: World, screen: Screen) -> None:
    with asking(world, screen, request) as watch:  # type: ignore[arg-type]
        answers(watch, "reset", None)
        is_not_ready(watch)
        watch.shows("reset")


def test_it_resets(world: World, screen: Screen) -> None:
    def serve(sock: socket.socket) -> None:
        request(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()

    with asking(world, screen, serve) as watch:
        answers(watch, "reset", None)
        is_not_ready(watch)


def test_slow_byte_by_byte(world: World, screen: Screen) -> None:
    gate = threading.Event()

    def serve(sock: socket.socket) -> None:
        request(sock)
        for byte in b"HTTP/1.1 200 OK\r\nx-long: " + b"y" * 500:
            sock.sendall(bytes([byte]))
            if gate.wait(0.05):
                return

    with asking(world, screen, serve) as watch:
        said = watch.until(answered)
        assert said["port"]["answer"] == "no_response"
        assert "byte by byte" in said["port"]["text"] or said["port"]["status"] is None
        is_not_ready(watch)
    gate.set()


def test_an_endless_answer(world: World, screen: Screen) -> None:
    """Its body is not read."""

    def serve(sock: socket.socket) -> None:
        request(sock)
        sock.sendall(b"HTTP/1.1 503 Service Unavailable\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            sock.sendall(b"10000\r\n" + b"z" * 65536 + b"\r\n")

    with asking(world, screen, serve) as watch:
        answers(watch, "http", 503)
        is_not_ready(watch)
        watch.shows("503")


def test_endless_headers(world: World, screen: Screen) -> None:
    def serve(sock: socket.socket) -> None:
        request(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            sock.sendall(b"x-more: " + b"y" * 8000 + b"\r\n")

    with asking(world, screen, serve) as watch:
        said = watch.until(answered)
        assert said["port"]["status"] is None
        is_not_ready(watch)


def test_interim_answers_without_end(world: World, screen: Screen) -> None:
    def serve(sock: socket.socket) -> None:
        request(sock)
        while True:
            sock.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")

    with asking(world, screen, serve) as watch:
        said = watch.until(answered)
        assert said["port"]["status"] is None
        is_not_ready(watch)


@pytest.mark.parametrize("where", ["/health", "//[bad", "http://127.0.0.1:1/", "\\\\x\x01"])
def test_a_redirection(world: World, screen: Screen, where: str) -> None:
    """It is not followed: to itself, to another host, or to nonsense."""
    asked: list[bytes] = []

    def serve(sock: socket.socket) -> None:
        asked.append(request(sock))
        sock.sendall(f"HTTP/1.1 302 Found\r\nlocation: {where}\r\ncontent-length: 0\r\n\r\n".encode())

    with asking(world, screen, serve) as watch:
        said = watch.until(answered)
        assert said["port"]["status"] in (302, None)
        assert all(one.startswith(b"GET /health ") for one in asked)
        assert not [gap for gap in said["missing"] if gap["signal"] == "port"]
        is_not_ready(watch)


def test_it_does_not_speak_http(world: World, screen: Screen) -> None:
    def serve(sock: socket.socket) -> None:
        sock.sendall(b"SSH-2.0-OpenSSH_9.9\x1b[31m\r\n\r\n")
        hold(sock)

    with asking(world, screen, serve) as watch:
        answers(watch, "reset", None)
        text = watch.shows("does not speak HTTP")
        assert "\x1b" not in text
        is_not_ready(watch)


@pytest.mark.parametrize("status", [404, 500])
def test_another_status(world: World, screen: Screen, status: int) -> None:
    def serve(sock: socket.socket) -> None:
        request(sock)
        sock.sendall(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n".encode())

    with asking(world, screen, serve) as watch:
        answers(watch, "http", status)
        is_not_ready(watch)
        watch.shows(str(status))


def test_a_200_before_the_ready_line(world: World, screen: Screen) -> None:
    """What the log denies is not ready by the port alone."""

    def serve(sock: socket.socket) -> None:
        request(sock)
        sock.sendall(GOOD)

    with asking(world, screen, serve) as watch:
        watch.until(lambda json: json["port"] and json["port"]["status"] == 200)
        watch.shows("200")
        is_not_ready(watch)


def test_somebody_else_holds_it(world: World, screen: Screen) -> None:
    """Its holder is named, and not asked."""
    asked: list[bytes] = []

    def serve(sock: socket.socket) -> None:
        asked.append(request(sock))

    with answering(serve) as port:
        world.listens(port, owner=555)
        with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as watch:
            said = watch.until(lambda json: json["port"] and json["port"]["answer"] == "skipped")
            assert [one["ours"] for one in said["port"]["listeners"]] == [False]
            assert "pid 555 (nginx)" in said["port"]["text"]
            watch.shows("another process", "nginx")
            assert not asked


def test_its_owner_cannot_be_seen(world: World, screen: Screen) -> None:
    """Another user's descriptors: whose port it is is not known, so it is no stranger's."""
    with answering(request) as port:  # type: ignore[arg-type]
        world.listens(port)
        (world.root / str(LAUNCHER) / "fd" / "7").unlink()
        with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as watch:
            said = watch.until(answered)
            assert [(one["pid"], one["ours"]) for one in said["port"]["listeners"]] == [(None, None)]
            is_not_ready(watch)


def test_tls(world: World, screen: Screen, tmp_path: Path) -> None:
    """Not announced by its arguments: found out, said, and asked."""
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=x"]
    made = subprocess.run([*words, "-keyout", str(key), "-out", str(cert)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("no openssl")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    def serve(sock: socket.socket) -> None:
        with context.wrap_socket(sock, server_side=True) as secure:
            secure.recv(4096)
            secure.sendall(b"HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n")

    with asking(world, screen, serve) as watch:
        watch.until(lambda json: answered(json) and json["port"]["status"] == 503)
        watch.shows("TLS")


def test_tls_was_announced_and_is_not_there(world: World, screen: Screen) -> None:
    def serve(sock: socket.socket) -> None:
        request(sock)
        sock.sendall(GOOD)

    with answering(serve) as port:
        world.listens(port, "--ssl-keyfile", "/k", "--ssl-certfile", "/c")
        with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as watch:
            answers(watch, "reset", None)
            watch.shows("no TLS on this port")


def test_ipv6(world: World, screen: Screen) -> None:
    def serve(sock: socket.socket) -> None:
        request(sock)
        sock.sendall(b"HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n")

    try:
        server = answering(serve, socket.AF_INET6, ("::1", 0))
        port = server.__enter__()
    except OSError:
        pytest.skip("no IPv6 here")
    world.listens(port, "--host", "::1", address="00000000000000000000000001000000")
    with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as watch:
        watch.until(lambda json: answered(json) and json["port"]["status"] == 503)
        watch.shows("[::1]", "503")
    server.__exit__(None, None, None)


@pytest.mark.parametrize("host", ["x" * 300, "a..b", "[::1", "exa mple\x1b[31m", "\udcff"])
def test_a_host_that_is_no_host(world: World, screen: Screen, host: str) -> None:
    """And the table of sockets cannot be read, so that it is asked all the same."""
    world.listens(30000, "--host", host)
    for pid in (1, LAUNCHER):
        (world.root / str(pid) / "net" / "tcp").unlink()
        (world.root / str(pid) / "net" / "tcp").mkdir()
    with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as watch:
        said = watch.until(lambda json: json["port"] or any(gap["signal"] == "port" for gap in json["missing"]))
        assert not [gap for gap in said["missing"] if "defect" in gap["remedy"]], said["missing"]
        assert said["port"]["status"] is None
        watch.shows("TP0", "TP1")


def test_the_table_of_sockets_cannot_be_read(world: World, screen: Screen) -> None:
    for pid in (1, LAUNCHER):
        (world.root / str(pid) / "net" / "tcp").unlink()
        (world.root / str(pid) / "net" / "tcp").mkdir()
    settings = Settings(proc_root=str(world.fake), interval_s=0.2, probe_http=False)
    with watching(screen, settings) as watch:
        said = watch.until(lambda json: json["port"])
        assert said["port"]["answer"] == "skipped"
        watch.shows("listening sockets cannot be read")


def test_a_port_that_goes_away_after_it_was_ready(world: World, screen: Screen) -> None:
    def serve(sock: socket.socket) -> None:
        request(sock)
        sock.sendall(GOOD)

    world.says("[2026-01-01 00:00:00] The server is fired up and ready to roll!")
    with asking(world, screen, serve) as watch:
        watch.until(lambda json: json["state"] == "ready")
        for pid in (1, LAUNCHER):
            (world.root / str(pid) / "net" / "tcp").write_text("  sl  local_address rem_address   st\n")
        watch.until(lambda json: json["port"]["answer"] == "refused")
        watch.clock.shift_s = 60.0
        watch.until(lambda json: json["state"] == "unhealthy")
        watch.shows("UNHEALTHY")


def test_a_unix_socket_that_is_mute(tmp_path: Path, screen: Screen) -> None:
    """vLLM's --uds, as its net/unix and its descriptors tell."""
    world = World(tmp_path)
    for pid in (TP0, TP1):
        world.fake.remove(pid)
    path = f"/tmp/sgmon-{os.getpid()}.sock"
    argv = ["/opt/v/bin/python", "-m", "vllm.entrypoints.openai.api_server", "--model", "m", "--uds", path]
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(path)
        sock.listen(4)
        world.launcher(argv=argv, fds={1: str(world.log), 2: str(world.log), 7: "socket:[4242]"})
        table = "Num       RefCount Protocol Flags    Type St Inode Path\n"
        table += f"0000000000000000: 00000002 00000000 00010000 0001 01  4242 {path}\n"
        for pid in (1, LAUNCHER):
            (world.root / str(pid) / "net" / "unix").write_text(table)
        with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as watch:
            said = watch.until(answered)
            assert (said["port"]["answer"], said["port"]["status"]) in (("no_response", None), ("timeout", None))
            is_not_ready(watch)
    os.unlink(path)
