"""The flight ring is bounded, and what it saves is a recording that opens."""

from pathlib import Path

import pytest

from sgmon.model import Event, LogReading, PortReading, Server, ServerReading
from sgmon.recording import codec
from sgmon.recording.ring_buffer import RingBuffer


def _log(t: float, text: str) -> Event:
    return Event(t, "log", LogReading(path="/l", text=text, size=1))


def test_the_ring_keeps_the_newest_and_stays_within_its_limit(tmp_path: Path) -> None:
    ring = RingBuffer(epoch=5.0, limit=20_000)
    for number in range(13_000):
        ring.write(_log(float(number), f"line {number} {number * 7919 % 104729}"))
    assert ring.bytes <= 20_000
    header, events = codec.read(ring.save(tmp_path / "a.jsonl.gz", "stalled"))
    kept = [event.t for event in events]
    assert (header.epoch, header.note) == (5.0, "stalled")
    assert kept[0] > 10_000 and kept[-1] == 12_999.0
    assert kept == [float(t) for t in range(int(kept[0]), 13_000)]
    assert (tmp_path / "a.jsonl.gz").stat().st_size < 27_000


def test_the_server_and_the_first_of_each_kind_are_kept(tmp_path: Path) -> None:
    ring = RingBuffer(epoch=0.0, limit=8_000)
    found = ServerReading(server=Server(pid=4711, start_ticks=1))
    ring.write(Event(0.0, "server", ServerReading(looked_for="SGLang")))
    ring.write(Event(1.0, "server", found))
    ring.write(Event(2.0, "port", PortReading("h", 1, "refused")))
    for number in range(8_000):
        ring.write(_log(float(number + 3), f"line {number} {number * 7919 % 104729}"))
    events = list(codec.read(ring.save(tmp_path / "a.jsonl.gz", ""))[1])
    assert events[0].reading == found
    assert any(isinstance(event.reading, PortReading) for event in events)


def test_a_full_disk_is_an_error_of_its_own_and_leaves_nothing(tmp_path: Path) -> None:
    ring = RingBuffer(epoch=0.0)
    ring.write(_log(1.0, "x"))
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        ring.save(tmp_path / "file" / "a.jsonl.gz", "")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
