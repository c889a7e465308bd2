"""Stacks of eight real Python processes, one of them elsewhere, stopped, dead, or at work."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sgmon.analyse.stacks import merge as merging
from sgmon.analyse.stacks.refusals import OTHER_USER, ZOMBIE, refusal
from sgmon.analyse.stacks.render import heading
from sgmon.collect.probes.base import Clock, Watched
from sgmon.collect.probes.pyspy import StackProbe
from sgmon.collect.probes.pyspy_dump import find_pyspy
from sgmon.model import Process, StackClass, StackDump
from sgmon.servers.sglang.stacks import STACKS
from sgmon.settings import Settings
from tests.stacks.eight import Ranks, ranks

SEVEN_AND_ONE = ["barrier"] * 3 + ["read_shard"] + ["barrier"] * 4


def merge(dumps: tuple[StackDump, ...]) -> tuple[StackClass, ...]:
    return merging.merge(dumps, STACKS)


def dump(found: Ranks, samples: int = 2) -> tuple[StackDump, ...]:
    return dump_pids([process.pid for process in found.processes], samples, found.processes)


def dump_pids(pids: list[int], samples: int = 1, processes: tuple[Process, ...] = ()) -> tuple[StackDump, ...]:
    probe = StackProbe(Watched(Settings(), Clock()), lambda: processes)
    probe.request(pids, samples, interval_s=0.05)
    dumps: list[StackDump] = []
    while True:
        reading = probe.read()
        dumps += reading.dumps if reading is not None else ()
        if reading is not None and reading.done:
            probe.close()
            return tuple(dumps)


def test_one_of_eight_elsewhere_and_unchanged() -> None:
    with ranks(SEVEN_AND_ONE) as found:
        dumps = dump(found)
    assert len(dumps) == 16
    outlier, rest = merge(dumps)
    assert (outlier.ranks, outlier.outlier, outlier.moving) == (("TP3",), True, False)
    assert outlier.frames[0].function == "read_shard"
    assert rest.ranks == ("TP0", "TP1", "TP2", "TP4", "TP5", "TP6", "TP7")
    assert heading([outlier, rest]) == "[TP0-2,4-7] | missing TP3"


def test_a_stopped_one_still_shows_its_stack() -> None:
    with ranks(["barrier", "read_shard"]) as found:
        found.stop(1)
        dumps = dump(found, 1)
    by_rank = {dump.rank: dump for dump in dumps}
    assert by_rank["TP1"].threads[0].frames[0].function == "read_shard"


def test_a_zombie_is_named_dead_and_an_outlier() -> None:
    with ranks(["barrier"] * 3) as found:
        found.make_zombie(2)
        outlier, rest = merge(dump(found, 1))
    assert (outlier.ranks, outlier.outlier, outlier.note) == (("TP2",), True, ZOMBIE.why)
    assert rest.ranks == ("TP0", "TP1")


def test_one_at_work_moves() -> None:
    with ranks(["barrier", "barrier", "compute_layer"]) as found:
        classes = merge(dump(found, 4))
    assert classes[0].ranks == ("TP2",)
    assert classes[0].outlier
    assert any(frame.function == "compute_layer" for frame in classes[0].frames)


# The child of posix_spawn opens a FIFO that nobody writes, and its parent waits for it in the kernel (vfork): D.
IN_D = """
import os, sys
def read_shard(fifo):
    print("there", flush=True)
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, fifo, os.O_RDONLY, 0)])
read_shard(sys.argv[1])
"""


def test_a_process_in_uninterruptible_sleep_shows_its_stack(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    child = subprocess.Popen([sys.executable, "-S", "-c", IN_D, str(fifo)], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        for _ in range(500):
            if _state(child.pid) == "D":
                break
            time.sleep(0.01)
        assert _state(child.pid) == "D"
        (found,) = dump_pids([child.pid])
        assert found.threads[0].frames[0].function == "read_shard"
        assert _state(child.pid) == "D"
    finally:
        child.kill()
        with open(os.open(fifo, os.O_RDWR | os.O_NONBLOCK), "wb"):
            child.communicate()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_another_users_process_is_called_that() -> None:
    pyspy = find_pyspy()
    assert pyspy is not None
    with ranks(["barrier"]) as found:
        pid = found.processes[0].pid
        try:
            tried = subprocess.run(
                [pyspy, "dump", "--nonblocking", "--json", "--pid", str(pid)],
                capture_output=True,
                text=True,
                user=65534,
            )
        except PermissionError:
            pytest.skip("another user cannot run py-spy from here")
    assert tried.returncode != 0
    assert refusal(tried.stderr, "S", uid_same=False, has_cap=False) == OTHER_USER


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
