"""Events of several nodes in one recording, and recordings from before there were nodes."""

from __future__ import annotations

import msgspec
import pytest

from sgmon.model import Event, LogReading, NodeReading, ProcsReading, Server, ServerReading
from sgmon.recording.codec import Decoder, Encoder, Lines, events_of, header_of
from sgmon.recording.ring_buffer import RingBuffer

EVENTS = [
    Event(0.5, "node", NodeReading("node-a", "live", offset_s=99.5, offset_error_s=0.01), node="node-a"),
    Event(1.0, "procs", ProcsReading(read_ahead_bytes=8), node="node-a"),
    Event(1.1, "procs", ProcsReading(read_ahead_bytes=16), node="node-b"),
    Event(2.0, "procs", ProcsReading(read_ahead_bytes=8), node="node-a"),
    Event(2.1, "procs", ProcsReading(read_ahead_bytes=16), node="node-b"),
    Event(2.2, "log", LogReading(path="/log", text="a\n"), node="node-b"),
    Event(2.5, "tick"),
    Event(2.6, "tick", node="node-a"),
]


def _through(events: list[Event]) -> tuple[list[bytes], list[Event | None]]:
    encoder, lines, decoder = Encoder(), Lines(), Decoder()
    written = [lines.line(encoded) for event in events if (encoded := encoder.encode(event)) is not None]
    return written, [decoder.decode(line) for line in written]


def test_events_of_several_nodes_come_back_as_they_were() -> None:
    written, read = _through(EVENTS)
    assert read == EVENTS
    assert b'"same"' in written[3] and b'"same"' in written[4]  # each node has its own last reading


def test_an_event_without_a_node_is_written_as_before() -> None:
    written, _ = _through([Event(1.0, "procs", ProcsReading(), 0.25), Event(2.0, "tick")])
    assert msgspec.json.decode(written[0]).keys() == {"t", "k", "took", "r"}
    assert written[1] == b'{"t":2.0,"k":"tick"}'


@pytest.mark.parametrize("restarted", ["node-a", "node-b"])
def test_a_ring_keeps_the_first_readings_of_every_node(restarted: str) -> None:
    ring = RingBuffer(0.0, limit=1)
    for name, pid in (("node-a", 7), ("node-b", 8)):
        ring.write(Event(0.1, "node", NodeReading(name, "live"), node=name))
        ring.write(Event(0.2, "server", ServerReading(Server(pid, 1)), node=name))
        ring.write(Event(0.3, "procs", ProcsReading(read_ahead_bytes=pid), node=name))
    ring.write(Event(0.4, "server", ServerReading(Server(9, 1)), node=restarted))
    for number in range(3):
        ring.write(Event(1.0 + number, "log", LogReading(path="/log", text=f"{number}" + "x" * (1 << 17))))
    data = b"".join(ring.parts("note"))
    assert header_of(data).note == "note"
    firsts = {(e.node, e.kind) for e in events_of(data) if e.t < 1.0}
    assert {("node-a", "node"), ("node-b", "node"), ("node-a", "server"), ("node-b", "server")} <= firsts
