"""The port probe on real sockets: refused, no response, 503, slow 200, reset, TLS, a stranger, a full accept queue."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sgmon.collect.probes import netns, unix_path
from sgmon.collect.probes import port as port_module
from sgmon.collect.probes.listeners import Listeners
from sgmon.collect.probes.port import PortProbe
from sgmon.model import Server, ServerArgs
from sgmon.servers import registry
from tests.proc.fake import FakeProc

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
STARTING = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"


def server(port: int, pid: int | None = None, **args: object) -> Server:
    return Server(pid=pid or os.getpid(), start_ticks=1, args=ServerArgs(port=port, **args))


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(8)
        yield sock


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(port_module, "FIRST_ANSWER_S", 0.3)
    monkeypatch.setattr(port_module, "CONNECT_S", 0.3)


def answer(listener: socket.socket, *replies: bytes | str) -> list[bytes]:
    """Answer one connection after the other; returns the requests as they come."""
    requests: list[bytes] = []

    def serve() -> None:
        for reply in replies:
            try:
                connection, _ = listener.accept()
            except OSError:  # the test is over
                return
            with connection:
                requests.append(connection.recv(4096))
                if reply == "reset":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                elif isinstance(reply, bytes):
                    connection.sendall(reply)

    threading.Thread(target=serve, daemon=True).start()
    return requests


def test_nothing_to_probe_before_a_server_is_known(watch):
    assert PortProbe(watch()).read() is None


def test_refused_costs_no_connection_and_no_httpx(closed_port):
    script = (
        "import sys\n"
        "from sgmon.collect.probes.base import Clock, Watched\n"
        "from sgmon.collect.probes.port import PortProbe\n"
        "from sgmon.settings import Settings\n"
        f"probe = PortProbe(Watched(Settings(port={closed_port}), Clock()))\n"
        "print(probe.read().answer, 'httpx' in sys.modules, probe.interval_s)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["refused", "False", "2.0"], done.stderr


def test_one_look_does_without_httpx_and_a_watch_without_its_command_line(listener):
    port = listener.getsockname()[1]
    answer(listener, OK, OK)
    script = (
        "import sys\n"
        "from sgmon.collect.probes.base import Clock, Watched\n"
        "from sgmon.collect.probes.port import PortProbe\n"
        "from sgmon.settings import Settings\n"
        "for one_look in True, False:\n"
        f"    probe = PortProbe(Watched(Settings(port={port}), Clock(), one_look=one_look))\n"
        "    print(probe.read().status, 'httpx' in sys.modules, 'click' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["200 False False", "200 True False"], done.stderr


def test_status_client_and_owner(watch, listener):
    port = listener.getsockname()[1]
    probe = PortProbe(watch(server(port)))
    requests = answer(listener, STARTING, OK)
    reading = probe.read()
    assert (reading.answer, reading.status, probe.interval_s) == ("http", 503, 2.5)
    assert reading.client.startswith("127.0.0.1:")
    assert [(one.pid, one.ours, one.accept_queue) for one in reading.listeners] == [(os.getpid(), True, 0)]
    own = Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ").decode()  # a test runner may have set a title
    assert reading.listeners[0].name.split()[0] in own
    assert requests[0].startswith(b"GET /health HTTP/1.1\r\n")
    assert b"connection: close" in requests[0].lower()
    reading = probe.read()
    assert (reading.status, probe.interval_s) == (200, 10.0)


def test_a_ready_server_gets_time_for_its_503(watch, listener, short, monkeypatch):
    """/health answers 503 after 20 s when the scheduler hangs: the longer wait begins with the first 200."""
    probe = PortProbe(watch(server(listener.getsockname()[1])))
    waits = []
    get = probe._get

    def spy(target):
        waits.append(port_module.ANSWER_S if probe._was_ready else port_module.FIRST_ANSWER_S)
        return get(target)

    monkeypatch.setattr(probe, "_get", spy)
    answer(listener, STARTING, OK, STARTING)
    assert [probe.read().status for _ in range(3)] == [503, 200, 503]
    assert waits == [0.3, 0.3, 22.0]


def test_a_server_without_response_is_asked_ever_more_rarely(watch, listener, short):
    probe = PortProbe(watch(server(listener.getsockname()[1])))
    first, second = probe.read(), probe.read()
    assert (first.answer, first.status) == ("no_response", None)
    assert first.listeners[0].accept_queue == 0
    assert first.client
    assert second.listeners[0].accept_queue == 1  # our own: it was never accepted
    assert second.note == "1 connection not accepted by the server yet"
    assert probe.interval_s == pytest.approx(0.6)
    probe._unanswered = 9
    assert probe._next(second) == 30


def test_full_accept_queue_is_a_connect_timeout(watch, short):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(sock.getsockname())
            fillers.append(filler)
        reading = PortProbe(watch(server(sock.getsockname()[1]))).read()
        for filler in fillers:
            filler.close()
    assert reading.answer == "timeout"
    assert reading.listeners[0].accept_queue >= 1


@pytest.mark.parametrize("reply", ["reset", "close"])
def test_reset(watch, listener, short, reply):
    answer(listener, reply, reply, reply)
    reading = PortProbe(watch(server(listener.getsockname()[1]))).read()
    assert (reading.answer, reading.note) == ("reset", "")


def test_what_is_not_http_is_said(watch, listener, short):
    answer(listener, b"SSH-2.0-OpenSSH\r\n\r\n")
    reading = PortProbe(watch(server(listener.getsockname()[1]))).read()
    assert reading.answer == "reset"
    assert reading.note.startswith("what answers does not speak HTTP")


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nx-long: ", b"HTTP/1.1 103 Early Hints\r\n\r\n"])
def test_answer_byte_by_byte_ends(watch, listener, short, head):
    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            pause = threading.Event()
            try:
                connection.sendall(head)
                while True:
                    connection.sendall(b"H")
                    pause.wait(0.1)
            except OSError:
                pass

    threading.Thread(target=drip, daemon=True).start()
    reading = PortProbe(watch(server(listener.getsockname()[1]))).read()
    assert (reading.answer, reading.status) == ("no_response", None)
    assert reading.latency_s < 3


def test_an_interim_answer_is_not_the_answer(watch, listener):
    answer(listener, b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + OK)
    assert PortProbe(watch(server(listener.getsockname()[1]))).read().status == 200


def test_foreign_owner_is_named_and_not_asked(watch, listener):
    port = listener.getsockname()[1]
    stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        probe = PortProbe(watch(server(port, pid=stranger.pid)))
        reading = probe.read()
    finally:
        stranger.communicate()
    assert reading.answer == "skipped"
    assert [(one.pid, one.ours) for one in reading.listeners] == [(os.getpid(), False)]
    assert f"held by another process, pid {os.getpid()}" in reading.note


def test_port_alone_is_asked_but_owned_by_nobody_known(watch, listener):
    answer(listener, OK)
    reading = PortProbe(watch(port=listener.getsockname()[1])).read()
    assert (reading.status, reading.listeners[0].ours, reading.listeners[0].pid) == (200, None, os.getpid())


def test_an_owner_seen_before_the_server_is_told_from_it_when_the_server_is_known(watch, listener):
    """sgmon is there first (its main use): whose port it is must not stay unknown for ever."""
    port = listener.getsockname()[1]
    watched = watch(port=port, probe_http=False)
    probe = PortProbe(watched)
    assert probe.read().listeners[0].ours is None
    watched.server = server(port)
    assert [(one.pid, one.ours) for one in probe.read().listeners] == [(os.getpid(), True)]
    stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        watched.server = server(port, pid=stranger.pid)
        assert [(one.pid, one.ours) for one in probe.read().listeners] == [(os.getpid(), False)]
    finally:
        stranger.communicate()


def test_an_unknown_owner_is_looked_for_again(tmp_path):
    fake = FakeProc(tmp_path)
    fake.add(100, ["server"])
    fake.add(200, ["other"])
    row = "   0: 0100007F:7918 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 777 1 0 100 0 0 10 0"
    for pid in (1, 100):
        (fake.root / str(pid) / "net" / "tcp").write_text(f"  sl\n{row}\n")
    listeners = Listeners(str(fake))

    def owner(now: float):
        found = listeners.find(100, frozenset(), 31000, now)
        return [(one.pid, one.ours) for one in found]

    assert owner(0.0) == [(None, None)]
    fake.add(200, ["other"], fds={5: "socket:[777]"})
    assert owner(2.0) == [(None, None)], "a look at all descriptors is not repeated at once"
    assert owner(11.0) == [(200, False)]
    fake.remove(200)
    fake.add(300, ["child"], ppid=100, fds={6: "socket:[777]"})
    assert owner(12.0) == [(300, True)], "the owner is gone: the next one is looked for at once"


def test_settings_port_wins_over_the_arguments(watch, listener, closed_port):
    answer(listener, OK)
    reading = PortProbe(watch(server(closed_port), port=listener.getsockname()[1])).read()
    assert (reading.status, reading.port) == (200, listener.getsockname()[1])


@pytest.mark.parametrize("listens", [True, False])
def test_a_port_that_is_not_known_is_asked_only_where_the_server_listens(watch, listener, monkeypatch, listens):
    usual = replace(registry.get("sglang"), default_port=listener.getsockname()[1])
    monkeypatch.setattr(port_module.registry, "get", lambda name: usual)
    with subprocess.Popen(["sleep", "60"]) as other:
        unknown = Server(pid=os.getpid() if listens else other.pid, start_ticks=1, args=ServerArgs(known=False))
        requests = answer(listener, OK)
        reading = PortProbe(watch(unknown)).read()
        other.kill()
    assert (unknown.port, bool(requests)) == (None, listens)
    assert reading.status == (200 if listens else None)
    if not listens:
        assert (reading.answer, reading.port, reading.where) == ("skipped", 0, "a port that is not known")
        assert "its arguments are not, and its launcher listens on none" in reading.note


@pytest.mark.parametrize(("reply", "answers"), [(OK, "http"), (STARTING, "http"), (NOT_FOUND, "skipped")])
def test_a_port_that_no_argument_tells_is_found_by_the_launchers_socket(watch, reply, answers):
    """A start by a script of one's own whose output is lost. A program around an engine may have HTTP of its own."""
    unknown = Server(pid=os.getpid(), start_ticks=1, args=ServerArgs(known=False))
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as http:
        answer(http, reply)
        reading = PortProbe(watch(unknown)).read()
        assert (reading.port, reading.answer) == (http.getsockname()[1], answers)


def test_http_switched_off(watch, listener):
    reading = PortProbe(watch(server(listener.getsockname()[1]), probe_http=False)).read()
    assert (reading.answer, reading.listeners[0].ours) == ("skipped", True)


def test_child_of_the_server_is_ours(watch):
    """SGLang forks its HTTP workers with --tokenizer-worker-num."""
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        port = int(child.stdout.readline())
        reading = PortProbe(watch(server(port), probe_http=False)).read()
    finally:
        child.communicate()
    assert [(one.pid, one.ours) for one in reading.listeners] == [(child.pid, True)]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "localhost"])
def test_wildcard_hosts_are_asked_on_loopback(watch, host):
    family = socket.AF_INET6 if host == "::" else socket.AF_INET
    with socket.socket(family) as sock:
        sock.bind(("127.0.0.1" if host == "localhost" else host, 0))
        sock.listen(8)
        answer(sock, OK)
        reading = PortProbe(watch(server(sock.getsockname()[1], host=host))).read()
    assert (reading.status, reading.host) == (200, host)


def test_listener_on_another_address_is_none_of_ours(watch):
    with socket.socket() as sock:
        sock.bind(("127.0.0.2", 0))
        sock.listen(1)
        reading = PortProbe(watch(server(sock.getsockname()[1], host="127.0.0.1"))).read()
    assert (reading.answer, reading.listeners) == ("refused", ())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        capture_output=True,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("no openssl")
    return folder


@pytest.mark.parametrize("said", [True, False])
def test_tls(watch, listener, certificate, said):
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
                with context.wrap_socket(plain, server_side=True) as connection:
                    if connection.recv(4096):
                        connection.sendall(OK)
            except ssl.SSLError:
                plain.close()
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    probe = PortProbe(watch(server(listener.getsockname()[1], ssl=said)))
    reading = probe.read()
    assert reading.status == 200
    assert ("speaks TLS" in reading.note) is not said
    assert probe.read().status == 200


def test_plain_http_where_tls_was_announced(watch, listener, short):
    answer(listener, b"HTTP/1.1 400 Bad Request\r\n\r\n")
    reading = PortProbe(watch(server(listener.getsockname()[1], ssl=True))).read()
    assert reading.answer == "reset"
    assert reading.note.startswith("no TLS on this port")


def test_proxies_of_the_environment_are_not_used(watch, listener, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    answer(listener, OK)
    assert PortProbe(watch(server(listener.getsockname()[1]))).read().status == 200


@pytest.fixture
def contained() -> Iterator[subprocess.Popen[bytes]]:
    """A server that says 200 on 127.0.0.1:30123 of a network namespace of its own."""
    script = (
        "import fcntl, socket, struct, sys\n"
        "s = socket.socket()\n"
        "fcntl.ioctl(s, 0x8914, struct.pack('16sH14x', b'lo', 1))\n"  # SIOCSIFFLAGS, IFF_UP
        "s = socket.create_server(('127.0.0.1', 30123)); print('up', flush=True)\n"
        "while True:\n"
        f"    c, _ = s.accept(); c.recv(4096); c.sendall({OK!r}); c.close()\n"
    )
    made = subprocess.Popen(["unshare", "-n", sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=-3)
    if made.stdout.readline() != b"up\n":
        made.communicate()
        pytest.skip("no network namespace can be made here")
    yield made
    made.kill()
    made.communicate()


def test_server_in_another_network_namespace_is_asked_there(watch, contained):
    probe = PortProbe(watch(server(30123, pid=contained.pid)))
    for _ in range(2):
        reading = probe.read()
        assert (reading.answer, reading.status) == ("http", 200)
        assert [(one.pid, one.ours) for one in reading.listeners] == [(contained.pid, True)]
        assert "network namespace of its own" in reading.note
    with pytest.raises(ConnectionRefusedError):  # we are where we were
        socket.create_connection(("127.0.0.1", 30123), timeout=1)


def test_namespace_that_may_not_be_entered_is_said(watch, contained, monkeypatch):
    def refuse(_: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(netns, "_join", refuse)
    reading = PortProbe(watch(server(30123, pid=contained.pid))).read()
    assert reading.answer == "skipped"
    assert reading.listeners[0].ours is True
    assert "may not enter it (Operation not permitted)" in reading.note


def test_a_port_that_the_server_picks_is_found_by_its_sockets(watch):
    """``--port 0``: ZeroMQ's sockets have a short accept queue, uvicorn's a long one. None of the short ones is asked."""
    picking = server(0)
    with socket.create_server(("127.0.0.1", 0), backlog=100) as internal:
        probe = PortProbe(watch(picking))
        asked_internal = answer(internal, OK)
        before = probe.read()
        assert (before.port, before.answer, before.listeners) == (0, "skipped", ())
        assert (
            before.note
            == "the server picks its port (--port 0), and its launcher listens on none: nothing to ask yet"
        )
        with socket.create_server(("127.0.0.1", 0), backlog=2048) as http:
            answer(http, OK)
            reading = probe.read()
            assert (reading.port, reading.status) == (http.getsockname()[1], 200)
            assert (reading.where, reading.listeners[0].ours) == (f"127.0.0.1:{reading.port}", True)
        assert probe.read().answer == "refused", "it stays the server's port when it is closed"
    assert not asked_internal


def test_of_several_picked_ports_none_is_guessed(watch):
    with (
        socket.create_server(("127.0.0.1", 0), backlog=2048) as one,
        socket.create_server(("127.0.0.1", 0), backlog=2048) as other,
    ):
        asked = [answer(one, OK), answer(other, OK)]
        reading = PortProbe(watch(server(0))).read()
        ports = sorted((one.getsockname()[1], other.getsockname()[1]))
    assert (reading.port, reading.answer, asked) == (0, "skipped", [[], []])
    assert f"listens on several: {ports[0]}, {ports[1]}; name it with --port" in reading.note


@pytest.mark.parametrize(
    ("listens", "given", "asked"),
    [
        ("::1", "localhost", "::1"),
        ("127.0.0.2", "some.name", "127.0.0.2"),
        ("::", "0.0.0.0", "::1"),
        ("0.0.0.0", "::", "127.0.0.1"),
    ],
)
def test_the_address_is_asked_that_the_server_listens_on(watch, listens, given, asked):
    """What the arguments say may be another one: a name, a wildcard of the other family, arguments not known."""
    family = socket.AF_INET6 if ":" in listens else socket.AF_INET
    with socket.socket(family) as sock:
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((listens, 0))
        sock.listen(8)
        answer(sock, OK)
        reading = PortProbe(watch(server(sock.getsockname()[1], host=given))).read()
    assert reading.status == 200
    assert reading.where == (f"[{asked}]:{reading.port}" if ":" in asked else f"{asked}:{reading.port}")
    assert f"http://{reading.where}/health" in reading.curl


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path has 20 characters at most: a UNIX socket's has 107."""
    with tempfile.TemporaryDirectory(prefix="sg", dir="/tmp") as made:
        yield Path(made)


@pytest.mark.parametrize("deep", [False, True])
def test_a_unix_socket_is_asked(watch, folder, deep):
    path = folder / "v.sock"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
        watched = watch(server(8000, uds=str(path)))
        probe = PortProbe(watched)
        assert probe.read().answer == "refused", "bound, and not listening yet"
        sock.listen(8)
        requests = answer(sock, STARTING, OK)
        if deep:  # as it is seen below the root of a container, whose path is longer than connect(2) takes
            below = folder / ("d" * 100)
            below.mkdir()
            path.rename(below / "v.sock")
            monkey = pytest.MonkeyPatch()
            monkey.setattr(unix_path, "_as_seen", lambda root, pid, path: str(below / "v.sock"))
        first, second = probe.read(), probe.read()
        if deep:
            monkey.undo()
    assert (first.answer, first.status, second.status) == ("http", 503, 200)
    assert [(one.pid, one.ours) for one in second.listeners] == [(os.getpid(), True)]
    assert (second.where, second.port) == (f"unix:{path}", 0)
    assert second.curl == f"curl -sS -m 25 -i --unix-socket {path} http://localhost/health"
    assert requests[0].startswith(b"GET /health HTTP/1.1\r\n")
