"""The stack probe: real py-spy on real Python processes in every state, and a py-spy that hangs or fails."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from sgmon.collect.probes import pyspy as pyspy_module
from sgmon.collect.probes import pyspy_dump
from sgmon.collect.probes.pyspy import StackProbe
from sgmon.model import Process, Role, StacksReading

TARGET = "import sys\ndef waits_here():\n    print(flush=True)\n    sys.stdin.read()\nwaits_here()\n"


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    """Starts Python processes that wait, as ranks TP0, TP1 ...; kills them in the end."""
    made: list[subprocess.Popen[bytes]] = []

    def begin(code: str = TARGET, **more: object) -> Process:
        child = subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, **more)
        made.append(child)
        child.stdout.readline()
        return Process(pid=child.pid, ppid=os.getpid(), start_ticks=0, role=Role.WORKER, rank=f"TP{len(made) - 1}")

    yield begin
    for child in made:
        child.kill()
        child.communicate()


@pytest.fixture
def probe(watch) -> Callable[..., StackProbe]:
    made: list[StackProbe] = []

    def make(*processes: Process) -> StackProbe:
        made.append(StackProbe(watch(), lambda: processes))
        return made[-1]

    yield make
    for one in made:
        one.close()


def readings(probe: StackProbe) -> list[StacksReading]:
    """Everything up to the end of the last request."""
    found = []
    while True:
        reading = probe.read()
        if reading is not None:
            found.append(reading)
        if not probe.busy:
            return found


def wait_for_state(pid: int, letters: str) -> None:
    for _ in range(500):
        if pyspy_dump._state("/proc", pid) in letters:
            return
        time.sleep(0.01)  # nothing to wait for: the kernel does not tell
    raise AssertionError(f"{pid} never came into state {letters}")


def fake_pyspy(tmp_path, monkeypatch, script: str) -> None:
    path = tmp_path / "py-spy"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(pyspy_module, "find_pyspy", lambda: str(path))


def test_nothing_to_do_without_a_request(probe):
    one = probe()
    assert one.read() is None
    assert not one.busy


def test_stacks_of_every_rank(start, probe):
    processes = [start() for _ in range(3)]
    one = probe(*processes)
    number = one.request(None, why="key d")
    found = readings(one)
    assert found[-1].done
    assert not any(reading.done for reading in found[:-1])
    assert {(reading.request, reading.why) for reading in found} == {(number, "key d")}
    dumps = sorted((dump for reading in found for dump in reading.dumps), key=lambda dump: dump.rank)
    assert [(dump.rank, dump.request) for dump in dumps] == [("TP0", number), ("TP1", number), ("TP2", number)]
    for dump, process in zip(dumps, processes, strict=True):
        assert (dump.error, dump.pid, dump.native) == ("", process.pid, False)
        assert dump.threads[0].frames[0].function == "waits_here"
        assert dump.command == f"py-spy dump --nonblocking --json --pid {process.pid}"
        assert dump.took_s > 0


def test_several_samples_and_several_requests(start, probe):
    process = start()
    one = probe(process)
    first = one.request([process.pid, process.pid], samples=2, interval_s=0.01)
    second = one.request([process.pid])
    found = readings(one)
    assert [reading.request for reading in found if reading.done] == [first, second]
    dumps = [dump for reading in found for dump in reading.dumps]
    assert [(dump.request, dump.sample) for dump in dumps] == [(first, 0), (first, 1), (second, 0)]


def test_stopped_process_is_read_without_touching_it(start, probe):
    process = start()
    os.kill(process.pid, signal.SIGSTOP)
    wait_for_state(process.pid, "T")
    one = probe(process)
    one.request(None)
    one.request(None, native=True)
    plain, native = (reading.dumps[0] for reading in readings(one))
    for dump in (plain, native):
        assert dump.error == ""
        assert dump.threads[0].frames[0].function == "waits_here"
    assert not native.native
    assert [m.signal for m in native.missing] == ["native frames"]
    assert pyspy_dump._state("/proc", process.pid) == "T"


def test_native_frames_and_the_target_runs_on(start, probe):
    process = start()
    one = probe(process)
    one.request(None, native=True)
    dump = readings(one)[-1].dumps[0]
    if dump.error:
        pytest.skip(dump.error)
    assert dump.native
    assert any(frame.native for frame in dump.threads[0].frames)
    assert pyspy_dump._state("/proc", process.pid) in "SR"


def test_zombie_has_no_stack(start, probe):
    process = start()
    os.kill(process.pid, signal.SIGKILL)
    wait_for_state(process.pid, "Z")
    one = probe(process)
    one.request(None)
    dump = readings(one)[-1].dumps[0]
    assert "zombie" in dump.error
    assert dump.missing[0].signal == "stack"


def test_gone_process_and_reused_pid(start, probe):
    process = start()
    reused = Process(pid=process.pid, ppid=1, start_ticks=5, role=Role.WORKER, rank="TP0")
    one = probe(reused)
    one.request([process.pid, 4194302])
    assert [dump.error for reading in readings(one) for dump in reading.dumps] == ["the process is gone"] * 2


def test_not_a_python_process(start, probe, watch):
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        one = probe()
        one.request([child.pid])
        dump = readings(one)[-1].dumps[0]
    finally:
        child.communicate()
    assert "not a Python process" in dump.error


def test_undumpable_process_is_refused_in_true_words(start, probe, monkeypatch):
    """As for a process of another user: py-spy says "check that the process is running", which misleads."""
    if os.geteuid() == 0:
        pytest.skip("root may read it")
    process = start("import ctypes, sys\nctypes.CDLL(None).prctl(4, 0)\n" + TARGET)
    one = probe(process)
    one.request(None)
    assert "the kernel refused" in readings(one)[-1].dumps[0].error


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_process_of_another_user(start, tmp_path):
    """sgmon as nobody, the server as root."""
    process = start()
    script = (
        "import os, sys\n"
        "os.setgroups([]); os.setresgid(65534, 65534, 65534)\n"
        "from sgmon.model import Process\n"
        "from sgmon.collect.probes import pyspy\n"
        "from sgmon.collect.probes.base import Clock, Watched\n"
        "from sgmon.settings import Settings\n"
        "import sgmon.analyse.stacks.refusals, sgmon.analyse.stacks.parse\n"
        "os.setresuid(65534, 65534, 65534)\n"
        f"probe = pyspy.StackProbe(Watched(Settings(), Clock()), lambda: ())\n"
        f"probe.request([{process.pid}])\n"
        "reading = probe.read()\n"
        "print(reading.dumps[0].error)\n"
        "print(reading.dumps[0].missing[0].remedy)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    if "not installed" in done.stdout or "could not be started" in done.stdout:
        pytest.skip("the user nobody cannot start this environment's py-spy")
    assert "belongs to another user" in done.stdout, done.stdout + done.stderr
    assert "sudo" in done.stdout


def test_hanging_pyspy_is_killed(start, probe, tmp_path, monkeypatch):
    fake_pyspy(tmp_path, monkeypatch, "exec sleep 60")
    monkeypatch.setattr(pyspy_dump, "DUMP_S", 0.2)
    one = probe(start())
    one.request(None)
    dump = readings(one)[-1].dumps[0]
    assert "did not return in time" in dump.error
    assert 0.2 <= dump.took_s < 2


def test_torn_stack_is_read_once_more(start, probe, tmp_path, monkeypatch):
    fake_pyspy(
        tmp_path,
        monkeypatch,
        f"if [ ! -e {tmp_path}/tried ]; then touch {tmp_path}/tried; echo 'Error: Bad address (os error 14)' >&2; exit 1; fi\n"
        'echo \'[{"pid": 1, "thread_id": 1, "os_thread_id": 1, "thread_name": "MainThread", "frames": []}]\'',
    )
    one = probe(start())
    one.request(None)
    found = readings(one)
    assert [len(reading.dumps) for reading in found] == [1]
    assert found[0].dumps[0].error == ""


def test_torn_twice_is_told(start, probe, tmp_path, monkeypatch):
    fake_pyspy(tmp_path, monkeypatch, "echo 'Error: Bad address (os error 14)' >&2; exit 1")
    one = probe(start())
    one.request(None)
    assert "changed while it was read" in readings(one)[-1].dumps[0].error


def test_output_that_is_no_json(start, probe, tmp_path, monkeypatch):
    fake_pyspy(tmp_path, monkeypatch, "echo hello")
    one = probe(start())
    one.request(None)
    assert "cannot be read" in readings(one)[-1].dumps[0].error


def test_first_ranks_come_before_the_slow_one(start, probe, tmp_path, monkeypatch):
    slow, quick = start(), start()
    empty = '[{"pid": 1, "thread_id": 1, "os_thread_id": 1, "thread_name": "MainThread", "frames": []}]'
    fake_pyspy(
        tmp_path,
        monkeypatch,
        f"case $* in *{slow.pid}) until [ -e {tmp_path}/go ]; do sleep 0.05; done;; esac; echo '{empty}'",
    )
    one = probe(slow, quick)
    one.request(None)
    first = one.read()
    assert ([dump.rank for dump in first.dumps], first.done) == (["TP1"], False)
    (tmp_path / "go").touch()
    last = readings(one)[-1]
    assert ([dump.rank for dump in last.dumps], last.done) == (["TP0"], True)


def test_two_at_once_and_no_more(start, probe, tmp_path, monkeypatch):
    processes = [start() for _ in range(5)]
    fake_pyspy(
        tmp_path,
        monkeypatch,
        f"touch {tmp_path}/run.$$; ls {tmp_path}/run.* | wc -l >> {tmp_path}/counts; sleep 0.05; rm {tmp_path}/run.$$; echo '[]'",
    )
    one = probe(*processes)
    one.request(None)
    assert sum(len(reading.dumps) for reading in readings(one)) == 5
    assert max(map(int, (tmp_path / "counts").read_text().split())) <= 2


def test_no_pyspy(start, probe, monkeypatch):
    monkeypatch.setattr(pyspy_module, "find_pyspy", lambda: None)
    one = probe(start())
    one.request(None)
    dump = readings(one)[-1].dumps[0]
    assert dump.error == "py-spy is not installed beside sgmon"
    assert "pip install py-spy" in dump.missing[0].remedy


def test_other_proc_is_refused(start, watch):
    process = start()
    one = StackProbe(watch(proc_root="/host/proc"), lambda: (process,))
    one.request(None)
    assert "pids are not ours" in one.read().dumps[0].error


def test_a_target_left_stopped_runs_on(start, probe, tmp_path, monkeypatch):
    """py-spy killed while it holds the target: what we stopped, we continue, and say so."""
    process = start()
    fake_pyspy(tmp_path, monkeypatch, f"kill -STOP {process.pid}; exec sleep 60")
    monkeypatch.setattr(pyspy_dump, "NATIVE_S", 0.3)
    one = probe(process)
    one.request(None, native=True)
    dump = readings(one)[-1].dumps[0]
    assert any(m.signal == "running" and "SIGCONT" in m.why for m in dump.missing)
    wait_for_state(process.pid, "SR")
