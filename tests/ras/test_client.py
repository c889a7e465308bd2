"""The RAS client against a port that behaves as the recorded one: also the one that never answers."""

from __future__ import annotations

import socket
from pathlib import Path

from sgmon.collect.probes.base import Clock, Watched
from sgmon.collect.probes.ras import RasProbe, query, server_address, split_address
from sgmon.model import Server
from sgmon.settings import Settings
from tests.ras.fake import data, ras


def test_one_answer() -> None:
    with ras("late_rank.json") as server:
        reading = query(server.address)
        assert server.commands == ["CLIENT PROTOCOL 2", "TIMEOUT 5", "SET FORMAT json", "VERBOSE STATUS"]
    assert (reading.answer, reading.connections, reading.unanswered_connections) == ("ok", 1, 0)
    assert reading.communicators[0].behind == (1,)


def test_every_second_connection_is_swallowed_by_the_stopped_process() -> None:
    with ras("stopped.json", script=["no_response", "answer"]) as server:
        reading = query(server.address, handshake_s=0.1)
    assert (reading.answer, reading.connections, reading.unanswered_connections) == ("ok", 2, 1)
    assert reading.communicators[0].ranks[1].missing


def test_no_response_at_all_is_evidence() -> None:
    with ras(script=["no_response"] * 9) as server:
        reading = query(server.address, handshake_s=0.05)
    assert (reading.answer, reading.unanswered_connections) == ("no_response", 4)
    assert "stopped" in reading.note


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    reading = query(f"127.0.0.1:{port}")
    assert reading.answer == "refused"
    assert "no NCCL communicator yet" in reading.note


def test_older_nccl_has_text_only() -> None:
    with ras("equal.json", "late_rank.txt", old=True) as server:
        reading = query(server.address)
    assert (reading.answer, reading.form, reading.connections) == ("ok", "text", 2)
    assert reading.communicators[0].behind == (1,)


def test_json_beyond_repair_falls_back_to_text() -> None:
    with ras("equal.json", "stopped.txt") as server:
        server.json_body = data("stopped.json")[:900]
        reading = query(server.address)
    assert (reading.answer, reading.form) == ("ok", "text")
    assert reading.communicators[0].ranks[0].missing


def test_another_service_on_the_port() -> None:
    with ras() as server:
        server.script = []
        server._answer = lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n")  # type: ignore[method-assign,assignment]
        reading = query(server.address)
    assert reading.answer == "unreachable"
    assert "not a RAS port" in reading.note


def test_addresses() -> None:
    assert split_address("localhost:28028") == ("localhost", 28028)
    assert split_address("[::1]:12345") == ("::1", 12345)
    assert split_address(":28100") == ("localhost", 28100)
    assert split_address("node7") == ("node7", 28028)


def _process(root: Path, pid: int, address: str) -> None:
    (root / str(pid)).mkdir()
    (root / str(pid) / "environ").write_bytes(f"A=b\0NCCL_RAS_ADDR={address}\0C=d\0".encode())


def test_probe_asks_only_when_asked_and_compares(tmp_path: Path) -> None:
    with ras("late_rank.json") as server:
        _process(tmp_path, 41, server.address)
        assert server_address(tmp_path / "41") == server.address
        watched = Watched(Settings(proc_root=str(tmp_path)), Clock(), Server(41, 1))
        probe = RasProbe(watched)
        assert probe.read() is None
        assert server.connections == 0
        probe.request()
        first = probe.read()
        second = probe.read()
        assert probe.read() is None
        assert first is not None and second is not None
        assert (first.unequal_unchanged, second.unequal_unchanged) == (None, True)
        probe.enabled = True
        assert probe.read() is not None
        probe.close()


def test_probe_without_a_server() -> None:
    probe = RasProbe(Watched(Settings(), Clock()))
    probe.request()
    assert probe.read() is None
