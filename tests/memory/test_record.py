"""A recording holds what was seen, survives being torn, and opens across versions."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from sgmon.model import (
    Event,
    FdTarget,
    Gpu,
    GpuReading,
    Listener,
    LogReading,
    Missing,
    PortReading,
    Process,
    ProcsReading,
    RasReading,
    Role,
    Server,
    ServerReading,
)
from sgmon.recording import codec
from sgmon.recording.replay import ReplaySource
from sgmon.recording.ring_buffer import RingBuffer
from sgmon.recording.writer import Recorder
from tests.recorded import RECORDINGS
from tui_app.cli import main

EVENTS = [
    Event(0.0, "tick"),
    Event(0.1, "server", ServerReading(server=Server(pid=7, start_ticks=99, argv=("python", "-m"))), 0.01),
    Event(
        0.2,
        "procs",
        ProcsReading(
            processes=(
                Process(
                    pid=7,
                    ppid=1,
                    start_ticks=99,
                    role=Role.LAUNCHER,
                    fds=(FdTarget(3, "socket:[1]"),),
                    stdio=(None, "/l", "/l"),
                    missing=(Missing("syscall", "not permitted", "sudo sgmon"),),
                ),
            )
        ),
    ),
    Event(0.3, "gpu", GpuReading(gpus=(Gpu(index=0, used_bytes=None, util_percent=0),))),
    Event(0.4, "log", LogReading(path="/l", text="caf\u00e9 \x1b[31m\r 5%|", offset=0, size=12)),
    Event(0.5, "port", PortReading("127.0.0.1", 30000, "refused", listeners=(Listener("*:1", ours=None),))),
    Event(1.2, "gpu", GpuReading(gpus=(Gpu(index=0, used_bytes=None, util_percent=0),))),
]


def _written(path: Path) -> Path:
    recorder = Recorder(path, epoch=1000.0, host="h")
    for event in [*EVENTS, Event(1.3, "nothing")]:
        recorder.write(event)
    recorder.close()
    return path


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl"])
def test_what_goes_in_comes_out(tmp_path: Path, name: str) -> None:
    header, events = codec.read(_written(tmp_path / name))
    assert (header.epoch, header.host) == (1000.0, "h")
    assert list(events) == EVENTS


def test_an_equal_reading_is_written_once(tmp_path: Path) -> None:
    lines = gzip.open(_written(tmp_path / "a.jsonl.gz"), "rt").read().splitlines()
    gpu = [json.loads(line) for line in lines if '"k":"gpu"' in line]
    assert ["r" in line for line in gpu] == [True, False]


def test_a_killed_recorder_loses_nothing_that_was_flushed(tmp_path: Path) -> None:
    whole = _written(tmp_path / "a.jsonl.gz")
    recorder = Recorder(tmp_path / "b.jsonl.gz", epoch=1000.0)
    for event in EVENTS:
        recorder.write(event)
    recorder.flush()  # no close: no gzip trailer
    assert list(codec.read(tmp_path / "b.jsonl.gz")[1]) == EVENTS
    torn = tmp_path / "torn.jsonl.gz"
    torn.write_bytes(whole.read_bytes()[:-30])
    assert list(codec.read(torn)[1]) == EVENTS[: len(list(codec.read(torn)[1]))]


@pytest.mark.parametrize("end", [-30, -5, -1])
def test_a_recording_that_ends_in_the_middle_says_so(end: int, tmp_path: Path) -> None:
    whole = _written(tmp_path / "a.jsonl.gz")
    plain = tmp_path / "a.jsonl"
    plain.write_bytes(gzip.decompress(whole.read_bytes()))
    for path in (whole, plain):
        for is_cut in (False, True):
            one = tmp_path / f"{is_cut}-{path.name}"
            one.write_bytes(path.read_bytes()[: end if is_cut else None])
            ending = codec.Ending()
            codec.length_s(one, ending)
            assert ending.is_cut == is_cut
            source = ReplaySource(one, speed=0)
            assert list(source)
            assert ("(cut)" in source.words()) == is_cut


def test_what_follows_a_whole_part_counts_too(tmp_path: Path) -> None:
    """The parts of a ring are gzip members, one after another: the last one may be cut."""
    whole = _written(tmp_path / "a.jsonl.gz").read_bytes()
    path = tmp_path / "two.jsonl.gz"
    for data, is_cut in ((whole + whole, False), (whole + whole[:40], True)):
        path.write_bytes(data)
        ending = codec.Ending()
        codec.length_s(path, ending)
        assert ending.is_cut == is_cut


def test_a_report_and_a_comparison_say_that_a_recording_is_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes((RECORDINGS / "gpu-oom-frac.jsonl.gz").read_bytes()[:-2000])
    assert main(["report", "--recording", str(path), "-o", str(tmp_path / "r.zip")]) == 0
    assert "ends in the middle" in capsys.readouterr().err
    with zipfile.ZipFile(tmp_path / "r.zip") as archive:
        page = archive.read(next(name for name in archive.namelist() if name.endswith("report.md"))).decode()
    assert "of a recording that ends in the middle" in page
    assert main(["diff", str(path), str(path)]) == 0
    assert "ends in the middle" in capsys.readouterr().err


def test_older_words_are_read_as_those_of_today(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_text(
        '{"sgmon_recording":1,"epoch":5.0}\n'
        '{"t":1.0,"k":"port","r":{"host":"h","port":1,"answer":"mute"}}\n'
        '{"t":2.0,"k":"ras","r":{"address":"h:1","answer":"mute","connections":2,"mute_connections":2}}\n'
    )
    _, events = codec.read(path)
    assert [event.reading for event in events] == [
        PortReading("h", 1, "no_response"),
        RasReading("h:1", "no_response", connections=2, unanswered_connections=2),
    ]


def test_unknown_kinds_and_fields_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "new.jsonl"
    path.write_text(
        '{"sgmon_recording":9,"epoch":5.0,"from_the_future":1}\n'
        '{"t":1.0,"k":"dreams","r":{}}\n'
        '{"t":2.0,"k":"port","r":{"host":"h","port":1,"answer":"http","status":200,"colour":"green"}}\n'
        '{"t":3.0,"k":"po'
    )
    header, events = codec.read(path)
    assert header.epoch == 5.0
    assert [(e.t, e.reading) for e in events] == [(2.0, PortReading("h", 1, "http", status=200))]


@pytest.mark.parametrize("content", [b"", b"hello\n", b'{"a":1}\n', b"\x1f\x8bgarbage", b"\x00" * 100])
def test_what_is_no_recording_is_said_in_words(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(codec.RecordingError, match=r"recording"):
        codec.read(path)


def test_a_missing_file_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(codec.RecordingError, match="cannot open"):
        codec.read(tmp_path / "none")


ARGS = "server_args=ServerArgs(model_path='/m', port=30000, api_key='k3y-of-the-house', token_ids=[1, 2])\n"
LOG = "[2026-11-29 10:00:00] " + ARGS + "x " * 4000 + "\rLoading 50%\rdone\n"
LOG += "-----BEGIN RSA PRIVATE KEY-----\nMIIBkeybody1\nkeybody2==\n-----END RSA PRIVATE KEY-----\n"
LOG += "key '-----BEGIN PRIVATE KEY-----\\nkeybody3-----END PRIVATE KEY-----' after\n"
LOG += "curl --api-key k3y-of-the-house end"


@pytest.mark.parametrize("piece", [1, 7, 30, 10_000])
def test_secrets_of_the_log_are_masked_also_where_readings_cut_them(tmp_path: Path, piece: int) -> None:
    path = tmp_path / "a.jsonl.gz"
    recorder, ring = Recorder(path, epoch=0.0), RingBuffer(0.0)
    for at in range(0, len(LOG), piece):
        event = Event(at / 1000, "log", LogReading("/l", offset=at, text=LOG[at : at + piece], size=len(LOG)))
        recorder.write(event)
        ring.write(event)
    recorder.close()
    for saved in (path, ring.save(tmp_path / "ring.jsonl.gz", "")):
        text = "".join(event.reading.text for event in codec.read(saved)[1])
        assert (
            text.count("\n") == LOG.count("\n")
            and text.count("x ") == 4000
            and "token_ids=[1, 2]" in text
            and text.endswith(" end")
        )
        assert "port=30000, api_key=" in text
        assert "keybody" not in text and text.count("PRIVATE KEY-----") == 4 and "' after" in text
        assert not any("k3y-of-the-house"[:n] in text for n in ((16, 8) if piece < 16 else (4,)))


def test_one_encoding_serves_recorder_and_ring(tmp_path: Path) -> None:
    recorder, ring, encoder = Recorder(tmp_path / "a.jsonl.gz", epoch=1000.0), RingBuffer(1000.0), codec.Encoder()
    for event in EVENTS:
        encoded = encoder.encode(event)
        assert encoded is not None
        recorder.take(encoded)
        ring.keep(encoded)
    recorder.close()
    ring.save(tmp_path / "b.jsonl.gz", "")
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        assert list(codec.read(tmp_path / name)[1]) == EVENTS
