"""Kill clocks: what ends a start, said before it does."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse.diagnosis.clocks import kill_clocks
from sgmon.analyse.diagnosis.context import context_of
from sgmon.model import Event, Server, ServerReading, Snapshot
from tests.diagnosis.world import World


def test_a_timeout_above_the_server_is_a_clock() -> None:
    world = World(1).to("weights")
    server = world.store.snapshot.server
    assert server is not None
    world.step(Event(0.0, "server", ServerReading(replace(server, kill_pid=90, kill_s=120.0, kill_epoch=-20.0))))
    world[0].compute()
    world.run(30)
    assert not any(e.signal == "clock" for e in world.verdict.evidence)
    world.run(20)
    assert [e.text for e in world.verdict.evidence if e.signal == "clock"] == [
        "the timeout above the server (pid 90) ends this server in 50s, 2m00s after it began"
    ]
    world[0].idle()
    world.run(40)
    assert world.verdict.state == "stalled"
    assert any("ends this server in" in e.text for e in world.verdict.evidence)


def test_a_timeout_above_the_server_is_read_in_the_clock_of_the_watch() -> None:
    server = Server(100, 1, kill_pid=90, kill_s=120.0, kill_epoch=1_795_000_000.0)
    clocks = kill_clocks(context_of(Snapshot(t=30.0, epoch=1_795_000_020.0, server=server)))
    assert [(clock.left_s, clock.outside) for clock in clocks] == [(70.0, True)]
