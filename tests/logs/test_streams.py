"""Logs that come through a pipe: from a command that is started again, and from our own input."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sgmon.analyse.log.fold import LogFold
from sgmon.collect.logs import command
from sgmon.collect.logs.command import CommandLog
from sgmon.collect.logs.stream import InputLog, newest_epoch
from sgmon.collect.probes.logtail import LogProbe
from sgmon.model import LogReading, Server
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(60)


def until(follower, true) -> list[LogReading]:
    """All readings up to the first after which ``true(readings)`` holds."""
    found: list[LogReading] = []
    end = time.monotonic() + 30
    while not true(found):
        assert time.monotonic() < end, found
        reading = follower.read()
        if reading is not None:
            found.append(reading)
        elif not follower.busy:
            select.select([], [], [], 0.01)
    return found


def text_of(readings) -> str:
    return "".join(reading.text for reading in readings)


def program(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_command_is_followed(tmp_path, clock):
    path = program(tmp_path, "show", "echo one; echo two; read line < go; echo three; exec sleep 100")
    os.mkfifo(tmp_path / "go")
    log = CommandLog((str(path),), clock)
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        found = until(log, lambda seen: text_of(seen) == "one\ntwo\n")
    finally:
        os.chdir(here)
    assert found[0] == LogReading(path=str(path), kind="command", size=0)
    assert (found[-1].kind, found[-1].size) == ("command", 8)
    (tmp_path / "go").write_text("\n")
    (more,) = [reading for reading in until(log, lambda seen: text_of(seen)) if reading.text]
    assert (more.text, more.offset, more.change) == ("three\n", 8, "")
    pid = log._process.pid
    log.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_words_are_no_shell_text(tmp_path, clock):
    log = CommandLog(("printf", "%s\n", "$(touch x); `id` | *"), clock)
    assert text_of(until(log, lambda seen: seen and seen[-1].change == "ended")) == "$(touch x); `id` | *\n"
    log.close()


def test_it_ends_with_sgmon_however_that_ends(tmp_path):
    """The command writes nothing, so that no SIGPIPE ends it."""
    code = (
        "import sys, time\nfrom sgmon.collect.logs.command import CommandLog\n"
        "from sgmon.collect.probes.base import Clock\n"
        "log = CommandLog(('sleep', '1000'), Clock())\nlog.read()\n"
        "print(log._process.pid, flush=True)\ntime.sleep(1000)"
    )
    sgmon = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    pid = int(sgmon.stdout.readline())
    while b"sleep" not in Path(f"/proc/{pid}/cmdline").read_bytes()[:6]:
        assert sgmon.poll() is None
    sgmon.kill()
    sgmon.wait()
    eventually(lambda: not _runs(pid), 30)
    sgmon.stdout.close()


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def test_how_it_ended_is_said_once(tmp_path, clock):
    path = program(tmp_path, "kubectl", "echo 'Error from server (NotFound): pods \"x\" not found' >&2; exit 1")
    log = CommandLog((str(path), "logs", "-f", "x"), clock)
    last = until(log, lambda seen: seen and seen[-1].change == "ended")[-1]
    assert 'has ended (exit code 1): Error from server (NotFound): pods "x" not found' in last.note
    again = []
    for _ in range(3):
        clock.shift_s += command.MOST_WAIT_S + 1
        again += [log.read()]
        until(log, lambda seen: log._process is None)
    assert [reading for reading in again if reading] == []
    log.close()


def test_no_such_program(clock):
    log = CommandLog(("/no/such/program",), clock)
    assert "No such file" in until(log, lambda seen: seen and seen[-1].change == "ended")[-1].note
    log.close()


def test_waits_longer_each_time(clock):
    log = CommandLog(("false",), clock)
    for wait_s in (2, 4, 8, 16, 30, 30):
        log.read()
        assert log._process is not None
        until(log, lambda seen: log._process is None)
        assert log._wait_s == wait_s
        clock.shift_s += command.MOST_WAIT_S + 1
    log.close()


def test_what_it_says_again_is_left_out(tmp_path, clock):
    """docker logs and kubectl logs print everything again when they are started again."""
    said = tmp_path / "said"
    said.write_text("one\ntwo\n")
    log = CommandLog(("cat", str(said)), clock)
    assert text_of(until(log, lambda seen: seen and seen[-1].change == "ended")) == "one\ntwo\n"
    with said.open("a") as file:
        file.write("three\n")
    clock.shift_s += command.MOST_WAIT_S + 1
    (more,) = until(log, text_of)
    assert (more.text, more.offset, more.change) == ("three\n", 8, "")
    log.close()


def test_another_text_begins_anew(tmp_path, clock):
    said = tmp_path / "said"
    said.write_text("one\ntwo\n")
    log = CommandLog(("cat", str(said)), clock)
    until(log, lambda seen: seen and seen[-1].change == "ended")
    said.write_text("another start, and longer\n")
    clock.shift_s += command.MOST_WAIT_S + 1
    (more,) = until(log, text_of)
    assert (more.text, more.offset, more.change) == ("another start, and longer\n", 0, "truncated")
    until(log, lambda seen: seen and seen[-1].change == "ended")
    said.write_text("short\n")
    clock.shift_s += command.MOST_WAIT_S + 1
    (more,) = until(log, text_of)
    assert (more.text, more.change) == ("short\n", "truncated")
    log.close()


def test_a_failure_to_reach_it_forgets_nothing(tmp_path, clock):
    path = program(tmp_path, "show", "test -e broken && { echo on; exit 1; }; echo one; echo two")
    log = CommandLog(("sh", "-c", f"cd {tmp_path} && exec {path}"), clock)
    until(log, lambda seen: seen and seen[-1].change == "ended")
    (tmp_path / "broken").touch()
    clock.shift_s += command.MOST_WAIT_S + 1
    last = until(log, lambda seen: seen and seen[-1].change == "ended")
    assert text_of(last) == ""
    log.close()


def test_it_goes_on_after_an_end(tmp_path, clock):
    path = program(tmp_path, "show", "echo one; test -e stay && exec sleep 100")
    log = CommandLog(("sh", "-c", f"cd {tmp_path} && exec {path}"), clock)
    until(log, lambda seen: seen and seen[-1].change == "ended")
    (tmp_path / "stay").touch()
    clock.shift_s += command.MOST_WAIT_S + 1
    until(log, lambda seen: log._held is None and log._process is not None)
    clock.shift_s += command.SETTLED_S + 1
    (back,) = until(log, lambda seen: seen)
    assert (back.change, back.text, back.note) == ("appeared", "", "")
    fold = LogFold()
    fold.feed(LogReading(path="x", kind="command", change="ended", note="it has ended"), 1.0)
    assert fold.state().note
    fold.feed(LogReading(path="x", kind="command", change="appeared"), 2.0)
    assert (fold.state().note, fold.state().change) == ("", "appeared")
    log.close()


def test_a_complaint_while_it_runs_is_a_note(tmp_path, clock):
    path = program(
        tmp_path, "journalctl", "echo 'Hint: You are not seeing messages of other users' >&2; exec sleep 99"
    )
    log = CommandLog((str(path),), clock)
    log.read()
    clock.shift_s += 2
    found = until(log, lambda seen: seen and seen[-1].note)
    assert found[-1].note.startswith("Hint: You are not seeing") and found[-1].change == ""
    log.close()


def test_more_than_a_pipe_holds(tmp_path, clock):
    log = CommandLog((sys.executable, "-c", "for i in range(200_000): print('line', i)"), clock)
    found = until(log, lambda seen: seen and seen[-1].change == "ended")
    assert text_of(found) == "".join(f"line {i}\n" for i in range(200_000))
    log.close()


def test_stdin(clock):
    read, write = os.pipe()
    log = InputLog(read, clock)
    assert log.read() == LogReading(path="-", kind="stdin", size=0)
    whole = "é漢\n".encode()
    os.write(write, whole[:3])
    assert log.read().text == "é"
    os.write(write, whole[3:])
    assert (log.read().text, log.read()) == ("漢\n", None)
    os.close(write)
    last = log.read()
    assert (last.change, last.text) == ("ended", "") and "has ended" in last.note
    assert log.read() is None and not log.busy
    os.close(read)


@pytest.mark.parametrize("kind", ["stdin", "command"])
def test_a_busy_stream_is_passed_on_at_the_pace_of_a_file_and_never_fills_its_pipe(kind, tmp_path, clock):
    os.mkfifo(tmp_path / "fifo")
    read = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    write = os.open(tmp_path / "fifo", os.O_WRONLY)
    log = InputLog(read, clock) if kind == "stdin" else CommandLog(("cat", str(tmp_path / "fifo")), clock)
    os.write(write, b"first\n")
    until(log, lambda seen: text_of(seen) == "first\n")
    clock.shift_s += command.SETTLED_S
    assert log.read() is None
    lines = [f"line {number}\n" for number in range(200)]
    found = []
    for line in lines:
        os.write(write, line.encode())
        if kind == "command":  # until cat has passed it on
            eventually(lambda: select.select([log._process.stdout], [], [], 0.1)[0])
        clock.shift_s += 0.05
        found.append(log.read())
        assert kind == "command" or not select.select([read], [], [], 0)[0]
    os.close(write)
    found = [one for one in found if one is not None]
    assert (
        8 <= len(found) <= 40
    )  # a second of it in each, beside the first ones, and what this machine's own time adds
    found += until(log, lambda seen: seen and seen[-1].change == "ended")
    assert text_of(found) == "".join(lines)
    log.close()
    os.close(read)


def test_a_cut_character_at_the_end_of_stdin(clock):
    read, write = os.pipe()
    log = InputLog(read, clock)
    os.write(write, "漢".encode()[:2])
    os.close(write)
    assert text_of(until(log, lambda seen: seen and seen[-1].change == "ended")) == "\ufffd"
    os.close(read)


def test_a_file_as_stdin(tmp_path, clock):
    (tmp_path / "log").write_text("one\n")
    with (tmp_path / "log").open("rb") as file:
        log = InputLog(file.fileno(), clock)
        assert text_of(until(log, lambda seen: seen and seen[-1].change == "ended")) == "one\n"


def test_old_text_is_as_old_as_its_envelope_says(clock):
    stamp = int((clock.epoch - 500) * 1e6)
    read, write = os.pipe()
    log = InputLog(read, clock)
    os.write(write, f'{{"__REALTIME_TIMESTAMP":"{stamp}","MESSAGE":"x"}}\n'.encode())
    first = log.read()
    assert first.age_s == pytest.approx(500, abs=30)
    assert log.read() is None
    os.write(write, f'{{"__REALTIME_TIMESTAMP":"{stamp}","MESSAGE":"y"}}\n'.encode())
    assert log.read().age_s is None  # it came while we looked
    os.close(write)
    os.close(read)


@pytest.mark.parametrize(
    ("text", "epoch"),
    [
        ('{"log":"x\\n","stream":"stderr","time":"2026-01-02T03:04:05.123456789Z"}\n', 1767323045),
        ("2026-01-02T03:04:05.123456789+01:00 stderr F x\n", 1767319445),
        ("[2026-01-02 03:04:05 TP0] no zone, no time\n", None),
        ("", None),
        ("2026-13-41T03:04:05Z x", None),
    ],
)
def test_times_of_envelopes(text, epoch):
    assert newest_epoch(text) == epoch


def test_the_probe_follows_what_the_server_names(programs, clock, watch):
    program(programs, "docker", 'echo "docker $*"; exec sleep 100')
    server = Server(pid=1, start_ticks=1, log_kind="command", log_command=("docker", "logs", "-f", "abc"))
    watched = watch(server)
    probe = LogProbe(watched)
    found = until(probe, text_of)
    assert text_of(found) == "docker logs -f abc\n" and found[-1].path == "docker logs -f abc"
    pid = probe._stream._process.pid
    watched.server = Server(pid=2, start_ticks=1, log_kind="pipe")
    assert probe.read().kind == "pipe"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    probe.close()


def test_the_users_command_goes_first(programs, watch, tmp_path):
    program(programs, "kubectl", "echo pod; exec sleep 100")
    (tmp_path / "log").write_text("file\n")
    server = Server(pid=1, start_ticks=1, log_kind="file", log_path=str(tmp_path / "log"))
    probe = LogProbe(watch(server, log_command=("kubectl", "logs")))
    assert text_of(until(probe, text_of)) == "pod\n"
    probe.close()
