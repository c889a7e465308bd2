"""What a collector sends when its pipe is free, slow, or blocked; clocks; where a log is gone on with."""

from __future__ import annotations

import os
import threading
import time

import msgspec
import pytest

from sgmon.model import Event, LogReading, PortReading, ServerReading
from sgmon.remote.log_place import LogPlace
from sgmon.remote.offset import ClockOffset
from sgmon.remote.outlet import LOG_PORTION, LOG_WAITS, Outlet
from sgmon.remote.wire import Unpacker


class Pipe:
    """An outlet into a pipe, and what was read of it."""

    def __init__(self) -> None:
        self._read, write = os.pipe()
        os.set_blocking(write, False)
        self.log_waits = threading.Event()
        self.outlet = Outlet(write, self.log_waits, 0.01)
        self.write = write
        self._unpacker = Unpacker()
        self.lines: list[dict] = []

    def run(self) -> None:
        threading.Thread(target=self.outlet.run, args=(lambda seconds: None,), daemon=True).start()

    def read_until(self, enough) -> list[dict]:
        until = time.monotonic() + 60
        while not enough(self.lines):
            assert time.monotonic() < until, [line["k"] for line in self.lines]
            for line in self._unpacker.lines(os.read(self._read, 1 << 16)):
                self.lines.append(msgspec.json.decode(line))
        return self.lines

    def fill(self) -> None:
        """Leave no room in it."""
        try:
            while True:
                os.write(self.write, b"\0" * 4096)
        except BlockingIOError:
            pass

    def drain(self, size: int) -> None:
        while size > 0:
            size -= len(os.read(self._read, size))

    def close(self) -> None:
        self.outlet.end()
        os.close(self._read)


@pytest.fixture
def pipe():
    made = Pipe()
    yield made
    made.close()


def port(t: float, status: int) -> Event:
    return Event(t, "port", PortReading(host="h", port=1, answer="http", status=status))


def log(t: float, text: str, offset: int = 0) -> Event:
    return Event(t, "log", LogReading("/l", "1:2", offset, text))


def test_the_same_reading_is_sent_as_such_and_the_newest_stands_for_those_before(pipe):
    for t in (1.0, 2.0, 3.0):
        pipe.outlet.take(port(t, int(t)))
    pipe.outlet.take(Event(2.5, "server", ServerReading()))
    pipe.outlet.take(Event(2.6, "server", ServerReading()))
    pipe.run()
    first = pipe.read_until(lambda lines: len(lines) >= 3)
    assert [(line["k"], line["t"]) for line in first] == [("server", 2.5), ("server", 2.6), ("port", 3.0)]
    pipe.outlet.take(port(4.0, 3))
    assert pipe.read_until(lambda lines: len(lines) >= 4)[3] == {"k": "port", "t": 4.0, "same": 1}


def test_a_long_log_goes_in_portions_behind_what_is_new_and_nothing_is_lost(pipe):
    text = "".join(f"line {number} ä\n" for number in range(60_000))
    pipe.outlet.take(log(1.0, text))
    assert pipe.log_waits.is_set() is (len(text) > LOG_WAITS)
    pipe.run()
    pipe.outlet.take(port(2.0, 200))

    def logs(lines: list[dict]) -> list[dict]:
        return [line["r"] for line in lines if line["k"] == "log"]

    lines = pipe.read_until(lambda lines: sum(len(one["text"]) for one in logs(lines)) == len(text))
    assert "".join(one["text"] for one in logs(lines)) == text
    assert max(len(one["text"]) for one in logs(lines)) <= LOG_PORTION
    assert [line["k"] for line in lines].index("port") <= 2
    at = 0
    for one in logs(lines):
        assert one["offset"] == at
        assert one["text"].endswith("\n")
        at += len(one["text"].encode())
    assert not pipe.log_waits.is_set()


def test_a_blocked_pipe_keeps_the_newest_and_lets_the_log_wait(pipe):
    pipe.fill()
    pipe.run()
    pipe.outlet.take(port(1.0, 1))
    for number in range(2, 50):
        pipe.outlet.take(port(float(number), number))
    for number in range(20):
        pipe.outlet.take(log(50.0 + number, "x" * 60_000 + "\n", number * 60_001))
    assert pipe.log_waits.is_set()
    pipe.drain(65536)
    lines = pipe.read_until(lambda lines: sum(line["k"] == "log" for line in lines) >= 20)
    assert [line["r"]["status"] for line in lines if line["k"] == "port"][-1] == 49
    assert sum(line["k"] == "port" for line in lines) <= 4


def test_a_stream_that_nobody_has_written_is_damaged():
    with pytest.raises(ValueError, match="damaged"):
        Unpacker().lines(b"Last login: yesterday")


def test_the_shortest_round_trip_counts():
    offset = ClockOffset(epoch=1000.0)
    assert offset.best is None
    offset.add(sent_t=1.0, came_t=1.4, clock=51.3, wall=1004.5)
    offset.add(sent_t=2.0, came_t=2.02, clock=52.01, wall=1005.01)
    offset.add(sent_t=3.0, came_t=3.5, clock=53.4, wall=1006.4)
    best = offset.best
    assert best.took_s == pytest.approx(0.02)
    assert best.zero == pytest.approx(50.0)  # far monotonic clock at our 0
    assert best.wall_s == pytest.approx(3.0)


def test_a_log_is_gone_on_with_where_the_last_collector_was():
    place = LogPlace()
    assert place.resume is None
    place.begin()
    place.taken(LogReading("/l", "1:2", 0, "one ä\n"))
    assert place.resume == ("1:2", 7)
    place.taken(LogReading("/l", "1:2", 7, "half \ufffd"))
    assert place.resume == ("1:2", 7)  # how many bytes that was is not known: read again
    place.begin()
    assert place.taken(LogReading("/l", "1:2", 7, "half")).change == ""
    place.begin()
    assert place.taken(LogReading("/l", "1:2", 0, "anew")).change == "truncated"
    place.begin()
    assert place.taken(LogReading("/l", "9:9", 0, "another")).change == "rotated"
    assert place.taken(LogReading("/l", "9:9", 7, " more")).change == ""
