"""The index against a naive split, and what happens to files: growth, rotation, truncation, deletion."""

from __future__ import annotations

import os
import pty
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sgmon.analyse.log import blocks
from sgmon.analyse.log.blocks import BLOCK, NewlineCounts, pieces, raw_lines
from sgmon.analyse.log.index import LogIndex
from sgmon.analyse.log.textfile import RegularFile, Spool
from sgmon.model import LogReading
from tests.logview.fakes import describe, index_of, reading, settle


class Bytes:
    """A file in memory."""

    def __init__(self, data: bytes) -> None:
        self.data, self.size = data, len(data)

    def read(self, offset: int, count: int) -> bytes:
        return self.data[offset : offset + count]


def naive(data: bytes) -> list[tuple[int, str]]:
    lines, offset = [], 0
    for part in data.split(b"\n"):
        lines.append((offset, part.replace(b"\0", b"").decode("utf-8", "replace")))
        offset += len(part) + 1
    return lines[:-1] if lines[-1][1] == "" and lines[-1][0] == len(data) else lines


line = st.one_of(
    st.binary(max_size=40),
    st.integers(0, 400).map(lambda n: b"x" * n),
    st.just(b""),
    st.just("größe 世界".encode()),
)


@given(st.lists(line, max_size=60), st.booleans(), st.integers(16, 90))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_blocks_hold_what_a_split_gives(
    monkeypatch: pytest.MonkeyPatch, lines: list[bytes], ended: bool, block: int
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", block)
    data = b"\n".join(part.replace(b"\r", b"") for part in lines) + (b"\n" if ended else b"")
    file = Bytes(data)
    found = [entry for b in range(len(data) // block + 2) for entry in raw_lines(file, b, len(data))[0]]
    assert found == naive(data)
    counts = NewlineCounts()
    while counts.advance(file, len(data)):
        pass
    assert counts.newlines == data.count(b"\n")
    for b in range(len(data) // block):
        assert counts.before(b) == data[: b * block].count(b"\n")
    ends = [i for i, byte in enumerate(data) if byte == 0x0A]
    for number in range(2, len(ends) + 2):
        assert counts.block_of(number) == ends[number - 2] // block


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.binary(min_size=1, max_size=400))
@settings(max_examples=60, deadline=None)
def test_counting_while_it_grows_is_counting_at_the_end(steps: list[int], data: bytes) -> None:
    file, counts, size = Bytes(data), NewlineCounts(), 0
    for step in [*steps, len(data)]:
        size = min(len(data), size + step)
        while counts.advance(file, size):
            pass
    assert counts.newlines == data.count(b"\n")
    assert counts.open_line == (data[-1:] != b"\n")


def test_line_numbers_and_offsets(tmp_path: Path) -> None:
    path = tmp_path / "log"
    texts = [f"line {n} " + "y" * (n % 300) for n in range(1, 2001)]
    path.write_text("\n".join(texts) + "\n")
    index = index_of(path)
    settle(index)
    assert index.total == 2000
    offset = 0
    for number, text in enumerate(texts, 1):
        assert index.offset_of(number) == offset
        offset += len(text) + 1
    assert index.line(1234) is not None and index.line(1234).text == texts[1233]
    assert index.line(2000).number == 2000
    assert index.offset_of(2001) is None
    assert [e[1].number for b in range(index.blocks) for e in index.block(b)] == list(range(1, 2001))


def test_growth_in_pieces_shows_the_unfinished_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntw")
    index = index_of(path)
    assert [e[1].text for e in index.block(0)] == ["one", "tw"]
    with path.open("ab") as out:
        out.write(b"o\nthree\n")
    before = index.version
    index.follow(reading(path))
    assert index.version != before
    assert [e[1].text for e in index.block(0)] == ["one", "two", "three"]
    settle(index)
    assert index.total == 3


def test_a_bar_shows_its_newest_state() -> None:
    bar = "\rLoad:   0%|  | 0/9 [00:00]\rLoad:  11%|# | 1/9 [00:01]\rLoad: 100%|##| 9/9 [00:09]"
    assert pieces(bar) == ["Load: 100%|##| 9/9 [00:09]"]
    glued = "\r  0%|  | 0/36 [00:00<?, ?it/s][2026-11-29 16:05:24 TP1] multimem all-gather disabled"
    assert pieces(glued) == [
        "  0%|  | 0/36 [00:00<?, ?it/s]",
        "[2026-11-29 16:05:24 TP1] multimem all-gather disabled",
    ]
    assert pieces("plain") == ["plain"]
    assert pieces("windows\r") == ["windows"]
    assert pieces("\r") == [""]


def test_the_newest_state_of_a_very_long_bar_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    states = "".join(f"\rCapturing: {n / 100:3.0f}%|xxxxx| {n}/9999 [00:01<00:02, 3.00it/s]" for n in range(10_000))
    path.write_text("begin\n" + states)
    index = index_of(path)
    assert index.block(0)[-1][1].text.startswith("Capturing: 100%|xxxxx| 9999/9999")


def test_a_megabyte_line_is_cut_with_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a\n" + b"z" * 1_000_000 + b"\nb\n")
    index = index_of(path)
    texts = [e[1].text for b in range(index.blocks) for e in index.block(b)]
    assert texts[0] == "a" and texts[2] == "b"
    assert 3000 < len(texts[1]) <= 4096 and texts[1].endswith("…")


def test_foreign_bytes_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\0" * 400 + b"after the hole\nbad \xff\xfe utf\n\x1b[31mred\x1b]0;title\x07\n")
    index = index_of(path)
    texts = [e[1].text for e in index.block(0)]
    assert texts[0] == "after the hole"
    assert texts[1] == "bad �� utf"
    assert texts[2] == "red"


def test_truncation_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("old\n" * 100)
    index = index_of(path)
    settle(index)
    generation = index.generation
    path.write_text("new\n")
    index.follow(reading(path, "truncated"))
    settle(index)
    assert index.generation != generation
    assert (index.total, index.line(1).text) == (1, "new")


def test_truncation_and_growth_past_the_old_size(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("old\n")
    index = index_of(path)
    path.write_text("entirely new\n" * 3)
    index.follow(reading(path, "truncated"))
    settle(index)
    assert (index.total, index.line(1).text) == (3, "entirely new")


def test_rotation_follows_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("old\n" * 5)
    index = index_of(path)
    os.rename(path, tmp_path / "log.1")
    path.write_text("new\n" * 9)
    index.follow(reading(path, "rotated"))
    settle(index)
    assert (index.total, index.line(9).text) == (9, "new")


def test_a_deleted_file_stays_readable_and_grows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("kept\n")
    writer = path.open("a")
    index = index_of(path)
    gone = reading(path, "deleted", "deleted")
    path.unlink()
    writer.write("more\n")
    writer.flush()
    index.follow(gone)
    settle(index)
    assert [index.line(n).text for n in (1, 2)] == ["kept", "more"]
    writer.close()


def test_a_name_that_leads_elsewhere_falls_back_to_the_readings(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("another file\n")
    index = LogIndex(describe)
    index.follow(LogReading(path=str(path), identity="1:2", text="of the reading\n", size=15))
    settle(index)
    assert index.line(1).text == "of the reading"


def test_a_missing_file_is_shown_once_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "log"
    index = LogIndex(describe)
    index.follow(LogReading(path=str(path), change="missing"))
    assert index.size == 0
    path.write_text("here\n")
    index.follow(reading(path, "appeared"))
    assert index.block(0)[0][1].text == "here"


def test_a_replay_keeps_the_text(tmp_path: Path) -> None:
    index = LogIndex(describe, live=False)
    for number in range(500):
        index.follow(
            LogReading(path="/not/here", identity="9:9", offset=number * 8, text=f"line {number:03}"[:7] + "\n")
        )
    settle(index)
    assert index.total == 500
    assert index.line(500).text == "line 49"
    index.follow(LogReading(path="/not/here", identity="9:9", change="truncated", text="fresh\n"))
    settle(index)
    assert (index.total, index.line(1).text) == (1, "fresh")


@pytest.mark.parametrize("kind", ["pipe", "pty", "socket"])
def test_what_is_no_file_is_never_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    ends: list[object] = []
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        ends.append(server)
    else:
        leader, follower = pty.openpty()
        ends += [leader, follower]
        path = Path(os.ttyname(follower))
        os.write(leader, b"typed by the user\n")
    with pytest.raises(OSError):
        RegularFile(str(path))
    index = LogIndex(describe)
    for as_kind in (kind, "file"):  # even if the probe were wrong about it
        index.follow(LogReading(path=str(path), kind=as_kind))
    assert index.size == 0
    if kind == "pty":
        assert os.read(ends[1], 100) == b"typed by the user\n"  # type: ignore[arg-type]
    for end in ends:
        end.close() if isinstance(end, socket.socket) else os.close(end)  # type: ignore[arg-type]


def test_unreadable_and_empty(tmp_path: Path) -> None:
    index = LogIndex(describe)
    assert (index.size, index.blocks, index.total, index.block(0), index.line(1)) == (0, 0, 0, [], None)
    path = tmp_path / "log"
    path.touch()
    index.follow(reading(path))
    assert index.block(0) == []


def test_memory_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("w") as out:
        for n in range(60_000):
            out.write(f"[2026-11-29 16:05:24 TP{n % 8}] a line of the usual length, number {n}, {'x' * 60}\n")
    index = index_of(path)
    settle(index)
    for block in range(index.blocks):
        index.block(block)
    held = index._generation
    assert held is not None and len(held.blocks) <= 48
    assert index.blocks == (path.stat().st_size + BLOCK - 1) // BLOCK


def test_the_spool_has_no_name() -> None:
    spool = Spool()
    spool.append("text\n")
    assert spool.read(0, 100) == b"text\n"
    assert spool.read(5, 10) == b""


def test_a_full_disk_ends_the_spool_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> int:
        raise OSError(28, "No space left on device")

    spool = Spool()
    spool.append("kept\n")
    monkeypatch.setattr(os, "pwrite", full)
    spool.append("lost\n")
    assert spool.full and spool.read(0, 100) == b"kept\n"


def test_the_spool_without_a_folder_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    def none(**_: object) -> object:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(tempfile, "TemporaryFile", none)
    spool = Spool()
    spool.append("text\n")
    assert spool.read(0, 100) == b"text\n"
