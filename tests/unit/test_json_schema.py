"""The documented JSON: its schema file is current, and what is printed has those types."""

from __future__ import annotations

import msgspec
import pytest

from sgmon.export.json import status_report
from sgmon.export.json_schema import FailureReport, FailureText, StatusReport
from sgmon.export.text import as_text
from sgmon.model import PortReading, Server, ServerArgs, Snapshot
from sgmon.model.server import RETITLED
from sgmon.recording.replay import ReplaySource
from sgmon.watch.engine import Engine
from tests.recorded import RECORDINGS
from tools import write_schema


def test_the_schema_file_is_current() -> None:
    assert write_schema.FILE.read_bytes() == write_schema.schema(), "run: python -m tools.write_schema"


@pytest.mark.parametrize(
    ("name", "state", "workers"),
    [
        ("cpu-tp2-tiny", "ended", [("TP0", "running"), ("TP1", "running")]),
        ("cpu-tp2-kill9-load", "crashed", [("TP0", "gone"), ("TP1", "gone")]),
        ("gpu-oom-frac", "crashed", [("", "gone")]),
    ],
)
def test_a_recording_gives_the_documented_types(name: str, state: str, workers: list[tuple[str, str]]) -> None:
    engine = Engine(ReplaySource(RECORDINGS / f"{name}.jsonl.gz", speed=0))
    engine.run_here()
    report = status_report(engine.snapshot)
    assert msgspec.json.decode(msgspec.json.encode(report), type=StatusReport) == report
    assert report.state == state
    assert report.server is not None and report.server.family == "sglang"
    seen = [rank for rank in report.ranks if rank.role == "worker"]
    assert sorted((rank.rank, rank.rank_state) for rank in seen) == workers
    assert {rank.role_label for rank in seen} == {"scheduler"}


def test_arguments_that_nothing_has_told_are_no_facts() -> None:
    server = Server(4, 7, args=ServerArgs(known=False), args_source=RETITLED)
    snapshot = Snapshot(server=server)
    report = status_report(snapshot)
    assert report.server is not None and not report.server.args_known
    assert any("its arguments are not known yet" in line for line in as_text(snapshot))


def test_a_port_without_a_number_is_null_and_says_why() -> None:
    """vLLM's --uds and --port 0: neither 0 nor the usual port of the family is a port of theirs."""
    socket = PortReading(host="/run/v.sock", port=0, answer="http", status=200, uds="/run/v.sock")
    report = status_report(Snapshot(server=Server(4, 7, args=ServerArgs(port=8000, uds="/run/v.sock")), port=socket))
    assert report.port is not None and report.server is not None
    assert (report.port.port, report.port.port_missing) == (None, "it serves on a UNIX socket")
    assert (report.server.port, report.server.port_missing) == (None, "it serves on a UNIX socket")
    open_yet = PortReading(host="127.0.0.1", port=0, answer="skipped", note="the server picks its port: not open yet")
    report = status_report(Snapshot(server=Server(4, 7, args=ServerArgs(port=0)), port=open_yet))
    assert report.port is not None and report.server is not None
    assert (report.port.port, report.port.port_missing) == (None, "the server picks its port: not open yet")
    assert (report.server.port, report.server.port_missing) == (None, "it picks its port itself (--port 0)")
    known = status_report(Snapshot(server=Server(4, 7), port=PortReading(host="x", port=30000, answer="refused")))
    assert known.port is not None and (known.port.port, known.port.port_missing) == (30000, "")


def test_no_server_yet_and_no_such_process() -> None:
    nothing = status_report(Snapshot())
    assert msgspec.json.decode(msgspec.json.encode(nothing), type=StatusReport) == nothing
    assert nothing.server is None and nothing.ranks == ()
    failure = FailureReport(2, FailureText("no process 4", "try another"))
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(failure), type=StatusReport)
