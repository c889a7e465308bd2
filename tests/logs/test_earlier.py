"""A log to which an earlier start has written: its crash is not that of the server that runs now."""

from __future__ import annotations

import os
import time

import pytest
from msgspec.structs import replace

from sgmon.collect.probes.logtail import LogProbe
from sgmon.model import Event, Server
from sgmon.proc import stat
from tests.diagnosis.world import World

OLD = """[2026-11-30 14:28:30] server_args=ServerArgs(model_path='m', tp_size=1)
[2026-11-30 14:28:38 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "a.py", line 1, in f
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.1 GiB
"""
NEW = "UserWarning: Only CUDA, MUSA and NPU support GGUF quantization currently.\n"


def server(path, pid: int = 2**22 + 1) -> Server:
    """One that began now."""
    ticks = int(time.clock_gettime(time.CLOCK_BOOTTIME) * stat.HZ)
    return Server(
        pid=pid, start_ticks=ticks, started_epoch=float(int(time.time()) - 1), log_path=str(path), log_kind="file"
    )


def look(probe: LogProbe) -> list:
    found = [probe.read()]
    while probe.busy:
        found.append(probe.read())
    return [reading for reading in found if reading is not None]


def test_what_was_written_before_the_server_began_is_no_word_of_it(tmp_path, watch):
    path = tmp_path / "server.log"
    path.write_text(OLD)
    os.utime(path, (time.time() - 0.5,) * 2)
    probe = LogProbe(watch(server(path)))
    (old,) = look(probe)
    path.write_text(OLD + NEW)
    (new,) = look(probe)
    assert (old.text, old.ends_earlier) == (OLD, True) and (new.text, new.ends_earlier) == (NEW, False)
    world = World(tp=1, gpu=False)
    world.ranks = []
    world.step(Event(world.t, "log", old))
    world.run(2)
    assert world.verdict.state == "progressing", world.verdict
    says = [fact.text for fact in world.verdict.evidence if fact.signal == "log"]
    assert says == ["the server has written nothing yet: the 4 lines of its log were there before it began"]
    world.step(Event(world.t, "log", new))
    world.run(1)
    log = world.store.snapshot.log
    assert log.error is None and log.run_line == 5 and log.lines == 5 and world.verdict.state == "progressing"


def test_a_log_that_the_server_itself_has_written_is_its_own(tmp_path, watch):
    path = tmp_path / "server.log"
    begun = server(path)
    path.write_text(OLD)
    os.utime(path, (time.time() + 0.1,) * 2)
    assert [reading.ends_earlier for reading in look(LogProbe(watch(begun)))] == [False]


@pytest.mark.parametrize("set_by_s", [0.0, -3600.0, 3600.0])
def test_a_server_that_is_started_again_into_the_same_log(tmp_path, watch, monkeypatch, set_by_s):
    """The watch has read the first one's words; the second has written before it was found. Between them the wall
    clock may have been set, which dates the file, too."""
    path = tmp_path / "server.log"
    path.write_text(OLD)
    watched = watch(server(path))
    probe = LogProbe(watched)
    assert look(probe)[-1].text == OLD
    later = server(path, 2**22 + 2)
    watched.server = replace(later, start_ticks=later.start_ticks + 100)  # a second after what was read
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + set_by_s)
    path.write_text(OLD + NEW)
    os.utime(path, (time.time() + 2.0,) * 2)
    found = look(probe)
    assert [(one.text, one.ends_earlier) for one in found] == [(OLD, True), (NEW, False)]
