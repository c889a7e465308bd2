"""One run of a command that reaches a machine: nothing that it said is lost when it ends."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

import pytest

from sgmon.collect.probes.base import Clock
from sgmon.model import Event, ProbeReading
from sgmon.remote import source
from sgmon.remote.connection import Connection
from sgmon.remote.hosts import Reach
from sgmon.remote.wire import MARK, EventLines, Packer
from sgmon.settings import Settings
from tests.nodes.watching import Watch


def wait_for_end(connection: Connection) -> None:
    watched = os.pidfd_open(connection._process.pid)
    assert select.select([watched], [], [], 60)[0]
    os.close(watched)
    assert connection.code() is not None


@pytest.mark.parametrize("stream", ["2", "1"])
def test_what_it_said_last_is_read_when_it_has_ended(stream: str) -> None:
    """It has written and ended between two looks, as on a loaded machine."""
    connection = Connection(["sh", "-c", f"echo Connection refused >&{stream}; exit 255"])
    wait_for_end(connection)
    assert connection.end() == 255
    assert connection.complaints == "Connection refused\n"


def test_a_command_that_has_ended_while_a_child_of_it_holds_its_streams(tmp_path: Path) -> None:
    """A proxy that ssh leaves behind: nothing more comes, and no stream ends."""
    left = tmp_path / "left"
    leaving = f"echo Connection refused >&2; sleep 600 & echo $! >> {left}; exit 255"
    try:
        with Watch([Reach("x", ("sh", "-c", leaving))]) as watch:
            watch.wait_for(lambda: "refused" in "".join(link.why for link in watch.links["x"]))
    finally:
        for pid in left.read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def test_what_a_collector_sent_last_comes_when_it_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go, sent = tmp_path / "go", tmp_path / "sent"
    os.mkfifo(go)
    last = Event(1.0, "probe", ProbeReading("gpu", error="the driver has gone"))
    sent.write_bytes(MARK + Packer().packed([EventLines().line(last)]))
    made: list[Connection] = []

    def connect(argv: tuple[str, ...]) -> Connection:
        made.append(Connection(argv))
        return made[-1]

    monkeypatch.setattr(source, "Connection", connect)
    reach = Reach("x", ("sh", "-c", 'read line < "$0"; cat "$1"', str(go), str(sent)))
    events = iter(source.RemoteSource(reach, Settings(), Clock()))
    while next(events).kind != "tick":  # then it has looked once, and nothing was there
        pass
    go.write_text("\n")
    wait_for_end(made[0])
    came = [next(events).kind for _ in range(3)]
    assert "probe" in came
