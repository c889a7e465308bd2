"""The log probe on real files: growth, split characters, rotation, truncation, deletion, and what is no file."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgmon.collect.logs import file as logfile
from sgmon.collect.logs import pace
from sgmon.collect.probes.base import Clock, ProbeError, Watched
from sgmon.collect.probes.logtail import LogProbe
from sgmon.model import LogReading, Server
from sgmon.settings import Settings


@pytest.fixture
def path(tmp_path):
    return tmp_path / "server.log"


def drain(probe: LogProbe) -> str:
    """All text up to where the file ends now."""
    text = ""
    while True:
        reading = probe.read()
        if reading is not None:
            text += reading.text
        if not probe.busy:
            return text


class Writer:
    """A process with the log as its fd 1 and 2, which appends what it is told (as `>` or `>>` would)."""

    def __init__(self, path, append: bool = True) -> None:
        self.path = str(path)
        with open(path, "ab" if append else "wb") as log:
            self.process = self._start(log)

    def _start(self, log) -> subprocess.Popen[bytes]:
        self._read, write = os.pipe()
        script = f"import os, sys\nfor line in sys.stdin.buffer: os.write(1, line); os.write({write}, b'.')"
        process = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=(write,)
        )
        os.close(write)
        return process

    def write(self, text: str) -> None:
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()
        os.read(self._read, 1)

    def server(self, **more: object) -> Server:
        return Server(pid=self.process.pid, start_ticks=1, log_path=self.path, log_kind="file", **more)

    def close(self) -> None:
        self.process.communicate()
        os.close(self._read)


@pytest.fixture
def writer(path) -> Iterator[Writer]:
    made = Writer(path)
    yield made
    made.close()


def test_text_comes_as_it_is(path, watch):
    path.write_bytes(b"one\n  50%|##\rtwo\x00\x1b[31m")
    probe = LogProbe(watch(log=str(path)))
    first = probe.read()
    status = path.stat()
    assert first == LogReading(
        path=str(path), identity=f"{status.st_dev}:{status.st_ino}", text="one\n  50%|##\rtwo\x00\x1b[31m", size=22
    )
    assert probe.read() is None
    with path.open("ab") as file:
        file.write(b" more")
    second = probe.read()
    assert (second.text, second.offset, second.size) == (" more", 22, 27)


def test_characters_split_across_reads(path, watch, monkeypatch):
    monkeypatch.setattr(pace, "EARLY", 100)
    whole = "é漢🙂".encode()
    path.write_bytes(b"")
    probe = LogProbe(watch(log=str(path)))
    assert probe.read().text == ""  # an empty log is known to be empty
    text, places = "", []
    for byte in whole:
        with path.open("ab") as file:
            file.write(bytes([byte]))
        reading = probe.read()
        text += reading.text
        if reading.text:
            places.append(reading.offset)
    assert text == "é漢🙂"
    assert places == [0, 2, 5]


@given(st.lists(st.binary(max_size=12), max_size=12))
def test_any_cutting_gives_the_same_text(chunks):
    """However the bytes arrive, the pieces are the whole, and each offset is where its text begins."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log")
        with open(path, "wb", buffering=0) as log, mock.patch.object(pace, "EARLY", 100):
            probe = LogProbe(Watched(Settings(log=path), Clock()))
            readings = [probe.read()]
            for chunk in (*chunks, b"\n"):
                log.write(chunk)
                readings.append(probe.read())
        probe.close()
    whole = b"".join(chunks) + b"\n"
    pieces = [reading for reading in readings if reading is not None]
    assert "".join(piece.text for piece in pieces) == whole.decode("utf-8", "replace")
    for piece in pieces:
        assert whole[: piece.offset].decode("utf-8", "replace") + piece.text == "".join(
            one.text for one in pieces[: pieces.index(piece) + 1]
        )


def test_invalid_bytes_are_replaced(path, watch):
    path.write_bytes(b"a\xffb\xc3(")
    assert LogProbe(watch(log=str(path))).read().text == "a\ufffdb\ufffd("


def test_much_is_read_in_rounds(path, watch):
    content = "".join(f"line {number}\n" for number in range(60_000))
    path.write_text(content)
    probe = LogProbe(watch(log=str(path)))
    first = probe.read()
    assert probe.busy
    assert len(first.text) == logfile.ROUND_BYTES
    assert first.text + drain(probe) == content
    assert not probe.busy


def test_a_huge_log_begins_late_at_a_whole_line(path, watch):
    path.write_text("".join(f"line {number:05}\n" for number in range(500)))
    reading = LogProbe(watch(log=str(path), log_limit_bytes=1000)).read()
    assert reading.change == "skipped"
    assert reading.text.startswith("line ")
    assert reading.offset % 11 == 0
    assert reading.offset + len(reading.text) == reading.size == 5500


def test_missing_is_told_once_and_then_appears(path, watch):
    probe = LogProbe(watch(log=str(path)))
    assert (probe.read().change, probe.read()) == ("missing", None)
    path.write_text("hello\n")
    reading = probe.read()
    assert (reading.change, reading.text) == ("appeared", "hello\n")


def test_truncated(path, watch):
    path.write_text("one\ntwo\n")
    probe = LogProbe(watch(log=str(path)))
    probe.read()
    path.write_text("new\n")
    reading = probe.read()
    assert (reading.change, reading.offset, reading.text) == ("truncated", 0, "new\n")


def test_truncated_and_grown_beyond_between_two_looks(path, watch):
    path.write_text("one\ntwo\n")
    probe = LogProbe(watch(log=str(path)))
    probe.read()
    path.write_text("a new log that is longer\n")
    reading = probe.read()
    assert (reading.change, reading.text) == ("truncated", "a new log that is longer\n")


def test_copytruncate_under_a_writer_without_append_leaves_nuls(path, watch):
    writer = Writer(path, append=False)
    try:
        probe = LogProbe(watch(writer.server()))
        writer.write("before\n")
        assert probe.read().text == "before\n"
        os.truncate(path, 0)
        assert probe.read().change == "truncated"
        writer.write("after\n")
        reading = probe.read()
        assert reading.text == "\0" * 7 + "after\n"
        assert reading.writer_offset == 13
    finally:
        writer.close()


def test_renamed_log_is_followed_where_the_writer_is(path, watch, writer, clock):
    probe = LogProbe(watch(writer.server()))
    writer.write("one\n")
    assert probe.read().text == "one\n"
    path.rename(path.with_suffix(".1"))
    path.write_text("")  # logrotate `create`: the writer does not know of it
    clock.shift_s += 1.1
    assert probe.read() is None
    writer.write("two\n")
    reading = probe.read()
    assert (reading.text, reading.offset, reading.change) == ("two\n", 4, "")


def test_attached_after_a_rename_the_writers_file_is_read(path, watch, writer):
    writer.write("one\n")
    path.rename(path.with_suffix(".1"))
    path.write_text("")
    assert LogProbe(watch(writer.server())).read().text == "one\n"


def test_rotated_without_a_known_writer(path, watch, clock):
    path.write_text("one\n")
    probe = LogProbe(watch(log=str(path)))
    probe.read()
    path.rename(path.with_suffix(".1"))
    path.write_text("two\n")
    clock.shift_s += 1.1
    reading = probe.read()
    assert (reading.change, reading.text, reading.offset) == ("rotated", "two\n", 0)


def test_deleted_log_is_read_on(path, watch, writer, clock):
    probe = LogProbe(watch(writer.server()))
    writer.write("one\n")
    probe.read()
    path.unlink()
    clock.shift_s += 1.1
    reading = probe.read()
    assert (reading.change, reading.kind) == ("deleted", "deleted")
    assert "lost when the server ends" in reading.note
    writer.write("two\n")
    reading = probe.read()
    assert (reading.text, reading.kind, reading.change) == ("two\n", "deleted", "")
    clock.shift_s += 1.1
    assert probe.read() is None


def test_deleted_before_the_watch_began(path, watch, writer):
    writer.write("one\n")
    path.unlink()
    reading = LogProbe(watch(writer.server())).read()
    assert (reading.text, reading.kind, reading.change) == ("one\n", "deleted", "deleted")


def test_writer_offset(path, watch, writer):
    probe = LogProbe(watch(writer.server()))
    writer.write("hello\n")
    assert probe.read().writer_offset == 6


def test_another_server_is_read_from_its_start(path, watch, writer):
    watched = watch(writer.server())
    writer.write("one\n")
    probe = LogProbe(watched)
    probe.read()
    watched.server = Server(pid=writer.process.pid, start_ticks=2, log_path=str(path), log_kind="file")
    reading = probe.read()
    assert (reading.change, reading.text) == ("rotated", "one\n")


def test_log_given_before_any_server(path, watch):
    path.write_text("one\n")
    watched = watch(log=str(path))
    probe = LogProbe(watched)
    assert probe.read().text == "one\n"
    watched.server = Server(pid=1, start_ticks=1, log_path="/elsewhere", log_kind="file")
    assert probe.read() is None


@pytest.mark.parametrize("kind", ["pipe", "pty", "socket", "null"])
def test_what_cannot_be_read_is_told_once_with_a_way_out(watch, kind):
    probe = LogProbe(watch(Server(pid=1, start_ticks=1, log_kind=kind)))
    reading = probe.read()
    assert (reading.kind, reading.change, reading.text) == (kind, "unreadable", "")
    assert reading.note
    assert probe.read() is None


def test_pipes_terminals_and_sockets_are_never_opened(tmp_path, watch, monkeypatch):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    listening = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(listening))
        master, slave = pty.openpty()
        opened = []
        monkeypatch.setattr(os, "open", lambda path, *rest: opened.append(path))
        found = [
            LogProbe(watch(log=str(path))).read().kind for path in (fifo, listening, os.ttyname(slave), "/dev/null")
        ]
        os.close(master)
        os.close(slave)
    assert found == ["pipe", "socket", "pty", "null"]
    assert opened == []


@pytest.mark.parametrize("content", [b"\x7fELF" + bytes(range(256)) * 40, bytes(range(128, 256)) * 100])
def test_binary_file(path, watch, content):
    path.write_bytes(content)
    with pytest.raises(ProbeError, match="not a text file"):
        LogProbe(watch(log=str(path))).read()
    reading = LogProbe(watch(Server(pid=1, start_ticks=1, log_path=str(path), log_kind="file"))).read()
    assert (reading.change, reading.text) == ("unreadable", "")


def test_directory(tmp_path, watch):
    with pytest.raises(ProbeError, match="is a directory"):
        LogProbe(watch(log=str(tmp_path))).read()


def test_no_permission(path, watch):
    path.write_text("x")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("we may read everything")
    with pytest.raises(ProbeError, match="Permission denied"):
        LogProbe(watch(log=str(path))).read()


def test_no_permission_in_words(path, watch, monkeypatch):
    path.write_text("x")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    reading = LogProbe(watch(Server(pid=1, start_ticks=1, log_path=str(path), log_kind="file"))).read()
    assert (reading.change, reading.note) == ("unreadable", "cannot be read: Permission denied")


def test_nothing_yet(watch):
    assert LogProbe(watch()).read() is None


def test_text_from_before_the_watch_is_as_old_as_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("old line\n")
    old = time.time() - 120.0
    os.utime(path, (old, old))
    probe = LogProbe(Watched(Settings(log=str(path)), Clock()))
    first = probe.read()
    assert isinstance(first, LogReading)
    assert first.age_s == pytest.approx(120.0, abs=2.0)
    with path.open("a") as file:
        file.write("new line\n")
    os.utime(path, (old, old))  # a file server whose clock is behind
    second = probe.read()
    assert isinstance(second, LogReading)
    assert (second.text, second.age_s) == ("new line\n", None)
    probe.close()
