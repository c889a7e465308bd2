"""Rotation as container runtimes and loggers do it: nothing is lost, nothing is read twice."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
from collections.abc import Callable

import pytest

from sgmon.collect.logs import file, rotated, unpacked
from sgmon.collect.probes.logtail import LogProbe
from sgmon.model import Server


def drain(probe: LogProbe, clock) -> list:
    """All readings until nothing changes any more, whatever the time between two looks is."""
    found, quiet = [], 0
    while quiet < 3:
        reading = probe.read()
        if reading is None and not probe.busy:
            quiet += 1
            clock.shift_s += file._LOOK_S + 0.1
        if reading is not None:
            found.append(reading)
            quiet = 0
    return found


def write(path, text: str, mtime: float) -> None:
    with path.open("a") as log:
        log.write(text)
    os.utime(path, (mtime, mtime))


def rotate(path, count: int) -> None:
    """As dockerd does with max-file (daemon/logger/loggerutils/logfile.go: rotate)."""
    for number in range(count, 1, -1):
        if (old := path.with_name(f"{path.name}.{number - 1}")).exists():
            old.rename(path.with_name(f"{path.name}.{number}"))
    path.rename(path.with_name(f"{path.name}.1"))
    path.touch()


def server(path, **more) -> Server:
    return Server(pid=2**22 + 1, start_ticks=1, log_path=str(path), log_kind="file", **more)


def test_each_rotated_file_is_read_once(tmp_path, watch, clock):
    path = tmp_path / "ID-json.log"
    write(path, "one\n", 1000)
    probe = LogProbe(watch(server(path)))
    assert "".join(r.text for r in drain(probe, clock)) == "one\n"
    write(path, "two\n", 1001)  # it grows, and is rotated three times between two looks
    for number, word in enumerate(("three\n", "four\n", "five\n")):
        rotate(path, 5)
        write(path, word, 1002 + number)
    found = drain(probe, clock)
    assert "".join(r.text for r in found) == "two\nthree\nfour\nfive\n"
    assert [r.change for r in found if r.text] == ["", "rotated", "rotated", "rotated"]
    assert {r.path for r in found} == {str(path)} and len({r.identity for r in found}) == 4
    rotate(path, 5)
    write(path, "six\n", 1010)
    assert "".join(r.text for r in drain(probe, clock)) == "six\n"
    probe.close()


def test_a_file_of_an_earlier_run_is_not_read_in_between(tmp_path, watch, clock):
    path = tmp_path / "server.log"
    write(tmp_path / "server.log.1", "long ago\n", 500)
    write(path, "one\n", 1000)
    probe = LogProbe(watch(server(path)))
    drain(probe, clock)
    path.rename(tmp_path / "elsewhere")
    write(path, "two\n", 1001)
    assert "".join(r.text for r in drain(probe, clock)) == "two\n"
    probe.close()


def test_a_late_watch_begins_where_the_server_began(tmp_path, watch, clock):
    path = tmp_path / "0.log"
    write(tmp_path / "0.log.20260101-101112", "of the server before\n", 900)
    write(tmp_path / "0.log.20260102-101112", "the launch\n", 1100)
    write(tmp_path / "0.log.20260103-101112.gz", "plain in spite of its name\n", 1200)
    write(path, "ready\n", 1300)
    probe = LogProbe(watch(server(path, started_epoch=1000.0)))
    found = drain(probe, clock)
    assert "".join(r.text for r in found) == "the launch\nplain in spite of its name\nready\n"
    assert [r.change for r in found if r.text] == ["", "rotated", "rotated"]
    probe.close()


def test_bounded(tmp_path):
    path = tmp_path / "log"
    for number in range(4):
        write(tmp_path / f"log.{number}", "x" * 100, 1000 - number)
    assert [one.path for one in rotated.since(str(path), 0, 250)] == [
        str(tmp_path / "log.1"),
        str(tmp_path / "log.0"),
    ]
    assert rotated.since(str(tmp_path / "no" / "log"), 0, 250) == []


@pytest.mark.parametrize("late", [True, False], ids=["late", "watched"])
def test_files_that_were_written_in_one_jiffy(tmp_path, watch, clock, late):
    """A burst fills several: their mtimes are equal, whatever their sizes are, and .10 is older than .9."""
    path = tmp_path / "ID-json.log"
    words = [f"{number} {'x' * ((number * 7) % 5)}\n" for number in range(12)]
    probe = LogProbe(watch(server(path, started_epoch=999.0)))
    write(path, words[0], 1000)
    found = [] if late else drain(probe, clock)
    for word in words[1:]:
        rotate(path, 20)
        write(path, word, 1000)
    found += drain(probe, clock)
    assert "".join(r.text for r in found) == "".join(words)
    probe.close()


def test_truncated_in_place_and_replaced(tmp_path, watch, clock):
    """logrotate's copytruncate; conmon renames a new file over the old one (reopen_k8s_file)."""
    path = tmp_path / "ctr.log"
    write(path, "one\n" * 50, 1000)
    probe = LogProbe(watch(server(path)))
    drain(probe, clock)
    path.write_text("two\n")
    (cut,) = drain(probe, clock)
    assert (cut.text, cut.change) == ("two\n", "truncated")
    (tmp_path / "ctr.log.tmp").write_text("three\n")
    (tmp_path / "ctr.log.tmp").rename(path)
    (new,) = drain(probe, clock)
    assert (new.text, new.change) == ("three\n", "rotated")
    probe.close()


def test_stdout_in_a_file_is_not_the_log_of_stderr(tmp_path, watch, clock):
    """fd 2 goes through tee: what fd 1 writes is another file."""
    import subprocess
    import sys

    (tmp_path / "tee.log").write_text("of stderr\n")
    with (tmp_path / "out").open("wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-c", "print('x', flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.PIPE,
        )
        named = Server(pid=child.pid, start_ticks=1, log_path=str(tmp_path / "tee.log"), log_kind="file")
        probe = LogProbe(watch(named))
        assert probe.read().text == "of stderr\n"
        probe.close()
        child.communicate(b"\n")


def test_a_file_that_is_renamed_while_it_is_opened(tmp_path):
    """Its name leads to another file by then: it is found under its new one."""
    path = tmp_path / "log"
    write(tmp_path / "log.1", "first", 1000)
    looks = 0

    def look():
        nonlocal looks
        found = rotated.since(str(path), 0, 1000)[0]
        if not looks:
            write(path, "second", 1001)
            rotate(path, 5)
        looks += 1
        return found

    fd = rotated.opened(look)
    assert (os.read(fd, 100), looks) == (b"first", 2)
    os.close(fd)
    assert rotated.opened(lambda: None) is None


def test_a_file_of_the_servers_first_second_is_its_own(tmp_path):
    """The start of a process is known to a second only: what was written in it may seem older."""
    path = tmp_path / "server.log"
    path.write_text("b\n")
    (tmp_path / "server.log.1").write_text("a\n")
    os.utime(tmp_path / "server.log.1", (1000.4, 1000.4))
    assert [one.path for one in rotated.since(str(path), 1001.0, 100)] == [f"{path}.1"]
    assert rotated.since(str(path), 1002.0, 100) == []


ZSTD_HELLO = b"\x28\xb5\x2f\xfd\x04\x00\x31\x00\x00hello\n\xea\x6c\x5c\x5f"
PACKERS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}


def squeeze(path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    """As logrotate's ``compress``: another file with the same times, then the old one goes."""
    packed, times = path.with_name(f"{path.name}.{suffix}"), path.stat()
    packed.write_bytes(pack(path.read_bytes()))
    os.utime(packed, ns=(times.st_atime_ns, times.st_mtime_ns))
    path.unlink()


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_late_watch_begins_in_a_compressed_file(tmp_path, watch, clock, suffix):
    path = tmp_path / "server.log"
    write(path, "one\n", 1000)
    rotate(path, 5)
    squeeze(tmp_path / "server.log.1", suffix, PACKERS[suffix])
    write(path, "two\n", 1010)
    probe = LogProbe(watch(server(path, started_epoch=999.0)))
    found = drain(probe, clock)
    assert "".join(r.text for r in found) == "one\ntwo\n"
    assert {r.kind for r in found} == {"file"}
    probe.close()


@pytest.mark.parametrize("module", ["lzma", "compression.zstd"])
def test_what_this_python_cannot_unpack_does_not_hide_what_follows(tmp_path, watch, clock, monkeypatch, module):
    """Python 3.13 and older have no zstd, a Python that was built without liblzma no xz."""
    monkeypatch.setitem(sys.modules, module, None)
    suffix, data = ("xz", lzma.compress(b"one\n")) if module == "lzma" else ("zst", ZSTD_HELLO)
    path = tmp_path / "server.log"
    (tmp_path / f"server.log.2.{suffix}").write_bytes(data)
    os.utime(tmp_path / f"server.log.2.{suffix}", (1000, 1000))
    write(tmp_path / "server.log.1", "two\n", 1001)
    write(path, "three\n", 1010)
    probe = LogProbe(watch(server(path, started_epoch=999.0)))
    assert "".join(r.text for r in drain(probe, clock)) == "two\nthree\n"
    probe.close()


def test_files_that_were_compressed_between_two_looks_are_read_once(tmp_path, watch, clock):
    path = tmp_path / "server.log"
    write(path, "one\n", 1000)
    probe = LogProbe(watch(server(path)))
    drain(probe, clock)
    write(path, "two\n", 1001)
    for number, word in enumerate(("three\n", "four\n")):
        rotate(path, 5)
        squeeze(tmp_path / "server.log.1", "gz", gzip.compress)
        (tmp_path / "server.log.1.gz").rename(tmp_path / f"server.log.{9 - number}.gz")
        write(path, word, 1002 + number)
    assert "".join(r.text for r in drain(probe, clock)) == "two\nthree\nfour\n"
    probe.close()


def test_one_that_is_being_compressed_is_read_as_it_is(tmp_path):
    path = tmp_path / "server.log"
    write(tmp_path / "server.log.1", "one\n", 1000)
    write(tmp_path / "server.log.1.gz", "half of i", 1001)
    assert [one.path for one in rotated.since(str(path), 0.0, 100)] == [f"{path}.1"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"not compressed, whatever its name", b"not compressed, whatever its name"),
        (b"\x1f\x8bno gzip at all", b""),
        (gzip.compress(os.urandom(90_000))[:40_000], None),
        (gzip.compress(bytes(3 * unpacked.MOST_BYTES), 1), bytes(unpacked.MOST_BYTES)),
    ],
    ids=["plain", "garbage", "cut", "bomb"],
)
def test_a_compressed_file_that_is_damaged_or_a_bomb(tmp_path, data, text):
    packed = tmp_path / "server.log.1.gz"
    packed.write_bytes(data)
    fd = rotated.opened(lambda: rotated.since(str(tmp_path / "server.log"), 0.0, 1 << 20)[0])
    assert fd is not None
    with os.fdopen(fd, "rb") as seen:
        assert os.fstat(seen.fileno()).st_mtime_ns == packed.stat().st_mtime_ns
        seen.seek(0)
        assert seen.read() == text if text is not None else len(seen.read()) > 10_000
