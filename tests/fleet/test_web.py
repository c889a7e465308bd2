"""The HTTP server: what each path answers, and clients that do not behave."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator

import pytest

from sgmon.export.fleet import web
from sgmon.export.fleet.prometheus import text
from sgmon.export.fleet.web import Newest, WebServer
from sgmon.model import Snapshot
from tests.fleet.moments import worst

HUNG = ("cpu-tp2-live-hang-load", "stalled")


@pytest.fixture
def server() -> Iterator[WebServer]:
    snapshot = worst(*HUNG)
    with WebServer("127.0.0.1", 0, Newest(lambda: snapshot, lambda: snapshot.epoch + snapshot.t), text, 0.0) as made:
        yield made


def get(server: WebServer, path: str, method: str = "GET") -> tuple[int, bytes]:
    host, port = server.server_address[:2]
    connection = http.client.HTTPConnection(str(host), int(port), timeout=60)
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_each_path(server: WebServer) -> None:
    status, body = get(server, "/livez?verbose")
    said = json.loads(body)
    assert status == 503 and said["culprit"] == ["TP1"] and said["state"] == "stalled" and "TP1" in said["detail"]
    assert get(server, "/readyz")[0] == 503 and get(server, "/startupz")[0] == 503
    assert json.loads(get(server, "/status")[1])["odd_ranks"] == ["TP1"]
    assert b'sgmon_state{state="stalled"} 1.0' in get(server, "/metrics")[1]
    assert get(server, "/")[0] == 200 and get(server, "/etc/passwd")[0] == 404
    assert get(server, "/livez", "HEAD") == (503, b"")
    assert get(server, "/livez", "POST")[0] == 501, "nothing can be changed"


def test_without_the_library_the_probes_are_answered_all_the_same() -> None:
    snapshot = Snapshot(t=1.0)
    with WebServer("127.0.0.1", 0, Newest(lambda: snapshot, lambda: 1.0), None, 0.0) as made:
        status, body = get(made, "/metrics")
        assert status == 501 and b"pip install" in body
        assert get(made, "/livez")[0] == 200


def test_clients_that_never_read_or_never_ask_do_not_stop_the_others(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All places are taken by clients that say nothing; they are dropped, and the next one is served."""
    monkeypatch.setattr(web._Handler, "timeout", 0.3)
    mute = [socket.create_connection(server.server_address[:2], timeout=60) for _ in range(web.CLIENTS + 4)]
    for one in mute:  # an end of file, or a reset for those that found no place
        try:
            assert one.recv(1) == b""
        except ConnectionError:
            pass
        one.close()
    greedy = socket.create_connection(server.server_address[:2], timeout=60)
    greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    greedy.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
    assert get(server, "/livez")[0] == 503
    greedy.close()
