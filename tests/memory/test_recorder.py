"""The recorder's promises: a kill loses a second, a full disk is a finding, a stalled terminal loses nothing."""

from __future__ import annotations

import errno
import itertools
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon.model import Event, LogReading, Snapshot
from sgmon.recording import codec
from sgmon.recording.writer import NAME, Recorder
from sgmon.watch.engine import Engine

LIMIT_S = 100.0


def _log(t: float, text: str = "x") -> Event:
    return Event(t, "log", LogReading(path="/l", text=text, size=1))


def _times(path: Path) -> list[float]:
    return [event.t for event in codec.read(path)[1]]


def test_a_full_disk_is_told_and_the_recording_goes_on_when_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * 200_000)
    recorder = Recorder(small_disk / "a.jsonl", epoch=0.0)
    count = 0
    while not recorder.trouble().error:
        for _ in range(50):
            recorder.write(_log(float(count), "x" * 200))
            count += 1
        recorder.flush()
        assert count < 5000
    assert os.strerror(errno.ENOSPC) in recorder.trouble().error
    assert "make room" in recorder.trouble().remedy
    recorder.write(_log(float(count)))
    ballast.unlink()
    recorder.flush()
    assert recorder.trouble().error == ""
    assert recorder.close()
    assert _times(small_disk / "a.jsonl") == [float(n) for n in range(count + 1)]
    assert recorder.lost == 0


def test_what_does_not_fit_in_memory_either_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("sgmon.recording.writer.PENDING_BYTES", 10_000)
    recorder = Recorder(tmp_path / "a.jsonl", epoch=0.0)
    recorder.flush()
    with monkeypatch.context() as broken:
        broken.setattr("sgmon.recording.writer.os.write", full)
        for number in range(400):
            recorder.write(_log(float(number), "x" * 100))
        recorder.flush()
        lost = recorder.lost
        assert 0 < lost < 400
        assert f"{lost} events are lost" in recorder.trouble().error
    recorder.flush()
    recorder.write(_log(1000.0))
    recorder.close()
    assert _times(tmp_path / "a.jsonl") == [*(float(n) for n in range(400 - lost)), 1000.0]


class Ticking:
    """A source of ticks and log lines."""

    epoch = 0.0
    replay = ""

    def __init__(self, count: int, each: int) -> None:
        self._count, self._each = count, each

    def __iter__(self) -> Iterator[Event]:
        for number in range(self._count):
            yield _log(number / 4, "y" * self._each)
            yield Event(number / 4, "tick")

    def stop(self) -> None:
        self._count = 0

    def request_ras(self) -> None:
        pass

    def request_stacks(self, *_: object) -> None:
        pass

    def choose(self, pid: int) -> None:
        pass


def test_the_engine_shows_a_full_disk_and_does_not_stop(small_disk: Path) -> None:
    recorder = Recorder(small_disk / "a.jsonl", epoch=0.0)
    engine = Engine(Ticking(60, 8000), recorder=recorder)
    seen = []

    def look(snapshot: Snapshot) -> None:
        recorder.flush(1.0)
        seen.extend(status.error for status in snapshot.probes if status.name == NAME)

    engine.subscribe(look)
    engine.run_here()
    engine.stop()
    assert engine.failure == ""
    assert any("cannot be written" in error for error in seen)


_RECORD = [sys.executable, "-m", "tui_app.cli", "record", "--no-gpu", "--no-http"]


def _wait_for_events(path: Path, at_least_t: float) -> None:
    end = time.monotonic() + LIMIT_S
    while True:
        try:
            if _times(path)[-1:] > [at_least_t]:
                return
        except (codec.RecordingError, IndexError):
            pass
        assert time.monotonic() < end, "nothing was recorded"
        select.select([], [], [], 0.1)


def test_kill_9_loses_a_second_at_most(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    child = subprocess.Popen([*_RECORD, str(path)], stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait_for_events(path, 2.0)
        header = codec.read_header(path)
        child.send_signal(signal.SIGKILL)
        killed_t = time.time() - header.epoch
        child.wait()
    finally:
        child.kill()
        child.wait()
    times = _times(path)
    late_s = max(after - before for before, after in itertools.pairwise(times))  # how late this machine runs it
    assert killed_t - times[-1] < 1.0 + 2 * late_s


def test_a_lost_terminal_and_one_that_is_not_read_cost_nothing(tmp_path: Path) -> None:
    """stderr is a pty that nobody reads, full to the brim; then it is closed (SIGHUP); then SIGTERM ends it."""
    path = tmp_path / "a.jsonl.gz"
    master, slave = pty.openpty()
    os.set_blocking(slave, False)
    try:
        while True:
            os.write(slave, b"x" * 1024)
    except BlockingIOError:
        pass
    os.set_blocking(slave, True)
    child = subprocess.Popen([*_RECORD, str(path)], stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    try:
        _wait_for_events(path, 1.0)
        os.close(master)
        child.send_signal(signal.SIGHUP)
        went_on_t = _times(path)[-1] + 1.0
        _wait_for_events(path, went_on_t)
        child.send_signal(signal.SIGTERM)
        child.wait(LIMIT_S)
    finally:
        child.kill()
        child.wait()
    assert _times(path)[-1] > went_on_t
