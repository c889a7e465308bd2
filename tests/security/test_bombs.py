"""Recordings and logs that were made to fill memory, disk or time: read in a child with little memory."""

from __future__ import annotations

import gzip
import os
import re
import resource
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from msgspec.structs import replace

from sgmon.analyse.store import Store
from sgmon.export.bundle.collect import HEAD_BYTES, TAIL_BYTES, _log_of
from sgmon.export.json import status_report
from sgmon.export.text import as_text
from sgmon.recording import codec
from tests.diagnosis.replay import RECORDINGS

#: address space of the child; it needs 300 MB of it for itself
ROOM = 700 << 20
LIMIT_S = 100.0
HEADER = b'{"sgmon_recording":1,"epoch":1796000000.0}\n'
_TICK = b'{"t":1.0,"k":"tick"}\n'


def within_limits(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tui_app.cli", *argv],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM)),
        env={**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
    )


def squeezed(path: Path, head: bytes, block: bytes, count: int, tail: bytes = b"") -> Path:
    """A gzip file of ``head``, ``count`` times ``block``, and ``tail``: members one after the other."""
    member = gzip.compress(block, 1) if block else b""
    with path.open("wb") as file:
        file.write(gzip.compress(head))
        for _ in range(count):
            file.write(member)
        file.write(gzip.compress(tail))
    return path


def server_lines() -> bytes:
    """The first lines of a real recording: a server is known."""
    return b"\n".join(gzip.decompress((RECORDINGS / "cpu-tp2-tiny.jsonl.gz").read_bytes()).split(b"\n")[:12]) + b"\n"


ZEROS = bytes(1 << 24)


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bombs")
    long_line = folder / "line.jsonl"
    with long_line.open("wb") as file:  # sparse: 500 MB of NULs in a text
        file.write(server_lines() + b'{"t":99.0,"k":"log","r":{"path":"x","text":"')
        file.seek(500_000_000, os.SEEK_CUR)
        file.write(b'"}}\n')
    deep = b'{"t":9.0,"k":"procs","r":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n"
    never = (
        b'{"t":1e300,"k":"tick"}\n{"t":-5,"k":"tick"}\n{"t":3e8,"k":"port","r":{"host":"h","port":1,"answer":"x"}}\n'
    )
    return {
        "a gigabyte of zeros": squeezed(folder / "zeros.gz", server_lines(), ZEROS, 64),
        "a line of 500 MB": long_line,
        "nested brackets": squeezed(folder / "deep.gz", server_lines(), deep, 3),
        "times without end": squeezed(folder / "times.gz", server_lines(), never, 3),
    }


@pytest.mark.parametrize("name", ["a gigabyte of zeros", "nested brackets", "times without end"])
def test_a_report_of_it_is_made(name: str, bombs: dict[str, Path], tmp_path: Path) -> None:
    """What was recorded before the bomb is in the report."""
    run = within_limits("report", "--recording", str(bombs[name]), "-o", str(tmp_path / "r.zip"))
    assert run.returncode == 0, run.stderr[-2000:]
    assert (tmp_path / "r.zip").stat().st_size < 5_000_000


def test_of_much_log_only_both_ends_are_kept() -> None:
    """A small file may hold gigabytes of log."""
    line = b'{"t":9.0,"k":"log","r":{"path":"x","text":"%b"}}\n' % (b"a" * (1 << 20))
    data = gzip.compress(HEADER) + gzip.compress(line, 1) * 100
    tracemalloc.start()
    head, tail = _log_of(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(head) == HEAD_BYTES and len(tail) == TAIL_BYTES
    assert peak < 24 << 20
    assert _log_of(gzip.compress(HEADER + line.replace(b"a" * (1 << 20), b"all")))[1] == "all"


def test_a_line_that_fills_the_memory(bombs: dict[str, Path]) -> None:
    path = str(bombs["a line of 500 MB"])
    run = within_limits("diff", path, path)
    assert run.returncode == 0, run.stderr[-2000:]
    run = within_limits("report", "--recording", path)
    assert run.returncode != 0 and "File too large" in run.stderr and "Traceback" not in run.stderr, run.stderr


def test_a_file_of_zeros_is_no_recording(tmp_path: Path) -> None:
    for path in (squeezed(tmp_path / "z.gz", b"", ZEROS, 8), squeezed(tmp_path / "d.gz", b"[" * 100_000, b"", 0)):
        run = within_limits("report", "--recording", str(path), "-o", str(tmp_path / "r.zip"))
        assert run.returncode != 0 and "not a" in run.stderr and "recording" in run.stderr, run.stderr
        assert "Traceback" not in run.stderr, run.stderr


def test_an_epoch_that_is_no_date_is_refused(tmp_path: Path) -> None:
    for epoch in (b"1e300", b"-1", b"9e12"):
        path = tmp_path / "e.jsonl"
        path.write_bytes(HEADER.replace(b"1796000000.0", epoch) + _TICK)
        with pytest.raises(codec.RecordingError):
            codec.read(path)


def test_a_line_too_long_ends_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "LINE_BYTES", 1000)
    path = squeezed(tmp_path / "l.gz", HEADER + _TICK, b"x" * 400_000, 2, b"\n" + _TICK)
    assert [event.kind for event in codec.read(path)[1]] == ["tick"]


@pytest.mark.parametrize("name", ["h200x2-never-enters", "cpu-port-in-use", "vllm-live-shard-missing"])
@pytest.mark.parametrize("number", [b"-1", b"99999999999999999999", b"1e308", b"0"])
def test_numbers_that_nothing_has(name: str, number: bytes) -> None:
    """Each number of a reading becomes an absurd one: the screen's text and the JSON are still made."""
    header, _ = codec.read(RECORDINGS / f"{name}.jsonl.gz")
    store, read = Store(header.epoch), 0
    for line in list(codec._lines(RECORDINGS / f"{name}.jsonl.gz"))[1:120]:
        head, mark, body = line.partition(b'"r":')
        if not mark:
            continue
        for place in range(0, len(body), max(1, len(body) // 4)):
            event = next(iter(codec._events(iter([head + mark + _with_number(body, place, number)]))), None)
            if event is not None:
                store.step(event)
                read += 1
        if read:
            assert as_text(store.snapshot) and status_report(store.snapshot)
            assert as_text(replace(store.snapshot, t=store.snapshot.t + 1.0))
    assert read > 20 or number != b"0"


def _with_number(body: bytes, place: int, number: bytes) -> bytes:
    """The first number after ``place`` replaced."""
    return body[:place] + re.sub(rb"(?<=[:,\[])-?\d+(?:\.\d+)?(?=[,\]}])", number, body[place:], count=1)
