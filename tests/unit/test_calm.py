"""When the collector may read less: the server is ready, and nothing of it is wrong."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.collect.calm import SETTLED_S, Calm
from sgmon.model import Event, PortReading, Process, ProcsReading, Role, Server, ServerReading, ThreadWait

WELL = Process(7, 1, 100, Role.WORKER, state="S", threads=200)
OK = PortReading("127.0.0.1", 30000, "http", status=200)


def procs(t: float, process: Process = WELL) -> Event:
    return Event(t, "procs", ProcsReading(processes=(process,)))


def port(t: float, reading: PortReading = OK) -> Event:
    return Event(t, "port", reading)


def calm_at_20() -> Calm:
    calm = Calm()
    seen = [calm.observe(event) for event in (procs(0.5), port(1.0), procs(2.0), procs(1.0 + SETTLED_S), procs(20.0))]
    assert seen == [False, False, False, True, True]
    return calm


def test_calm_is_a_server_that_has_answered_200_for_a_while() -> None:
    calm_at_20()


@pytest.mark.parametrize(
    "change",
    [
        procs(21.0, replace(WELL, state="T")),
        procs(21.0, replace(WELL, state="D")),
        procs(21.0, replace(WELL, frozen=True)),
        procs(21.0, replace(WELL, gone=True)),
        procs(21.0, replace(WELL, thread_waits=(ThreadWait(8, "D", "folio_wait_bit_common", 3.0),))),
        Event(21.0, "procs", ProcsReading(processes=(WELL,), cgroup_frozen=True)),
        port(21.0, replace(OK, status=503)),
        port(21.0, replace(OK, answer="no_response", status=None)),
        Event(21.0, "server", ServerReading(Server(9, 200))),
    ],
)
def test_one_reading_that_tells_otherwise_ends_it(change: Event) -> None:
    assert calm_at_20().observe(change) is False


def test_after_an_outage_it_has_to_last_again() -> None:
    calm = calm_at_20()
    calm.observe(port(21.0, replace(OK, status=503)))
    assert calm.observe(port(22.0)) is False
    assert calm.observe(procs(22.0 + SETTLED_S)) is True
