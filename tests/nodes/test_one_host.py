"""One machine through a plain local command: the collector, its requests, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon import demo
from sgmon.demo import DemoServer
from sgmon.model import GpuReading, LogReading, StacksReading
from sgmon.remote import hosts
from sgmon.remote.hosts import reach
from sgmon.settings import Settings
from tests.fakenvml.library import State, build
from tests.nodes.test_packing import pythons
from tests.nodes.watching import Watch
from tests.waiting import eventually

ENV = "env SGMON_TEST_NODE={}"


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with demo.start("healthy", tp=2, speed=15.0) as started:
        yield started


@pytest.fixture(scope="module")
def nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


def collectors(name: str) -> list[int]:
    """Pids of the collectors that were started for ``name``."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            program = (environ.parent / "cmdline").read_bytes()
            mine = f"SGMON_TEST_NODE={name}".encode() in environ.read_bytes().split(b"\0")
        except OSError:
            continue
        if mine and hosts._RECEIVE.encode() in program:
            found.append(int(environ.parent.name))
    return found


def logs(watch: Watch) -> list[LogReading]:
    """The readings of the log that have text."""
    return [e.reading for _, e in list(watch.came) if isinstance(e.reading, LogReading) and e.reading.text]


@pytest.mark.parametrize("python", pythons())
def test_ranks_log_and_stacks_come(server, python):
    with Watch([reach("a", ENV, python)], Settings(pid=server.pid, simulated_gpus=str(server.gpus))) as watch:
        watch.wait_for(lambda: len(watch.snapshot("a").ranks) == 2)
        watch.wait_for(lambda: watch.snapshot("a").log.milestones and watch.snapshot("a").gpu.gpus)
        link = watch.wait_for(lambda: watch.state("a") == "live" and watch.links["a"][-1])
        assert link.python == subprocess.run([python, "-V"], capture_output=True, text=True).stdout.split()[1]
        assert link.hostname == os.uname().nodename
        assert abs(link.offset_s) <= link.offset_error_s + 0.05  # it is the same clock
        number = watch.source.request_stacks(None, 1, False, "key D")
        reading = watch.wait_for(lambda: next((e.reading for _, e in list(watch.came) if e.kind == "stacks"), None))
        assert isinstance(reading, StacksReading)
        assert (reading.request, reading.why) == (number, "key D")
        for at, event in watch.came:
            assert event.node == "a"
            assert event.t <= at + 0.1
        assert [p for p in watch.snapshot("a").probes if p.error and "defect" in p.remedy] == []
        tasks = Path(f"/proc/{collectors('a')[0]}/task").iterdir()
        assert {os.getpriority(os.PRIO_PROCESS, int(task.name)) for task in tasks} == {10}
        assert watch.stop() < 2.0
    eventually(lambda: not collectors("a"), 20)


def test_a_collector_ends_with_its_pipe_whatever_it_does():
    with Watch([reach("gone", ENV, sys.executable)], Settings(gpu=False)) as watch:
        watch.wait_for(lambda: watch.state("gone") == "live")
        pids = collectors("gone")
        assert pids
        connections = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pids[0])], capture_output=True, text=True)
        assert connections.returncode in (0, 1)
    eventually(lambda: not collectors("gone"), 20)


def test_a_collector_that_is_killed_is_started_again_and_the_log_goes_on(tmp_path):
    log = tmp_path / "server.log"
    log.write_text("one\ntwo ä\n")
    with Watch([reach("again", ENV, sys.executable)], Settings(log=str(log), gpu=False)) as watch:

        def text() -> str:
            return "".join(reading.text for reading in logs(watch))

        watch.wait_for(lambda: "two" in text())
        os.kill(collectors("again")[0], signal.SIGKILL)
        watch.wait_for(lambda: "lost" in [link.state for link in watch.links["again"]])
        lost = next(link for link in watch.links["again"] if link.state == "lost")
        assert "SIGKILL" in lost.why or "signal 9" in lost.why
        log.write_text(log.read_text() + "three\n")
        watch.wait_for(lambda: "three" in text())
        assert text() == "one\ntwo ä\nthree\n"
        assert watch.state("again") == "live"


def test_a_log_that_was_replaced_meanwhile_says_so(tmp_path):
    log = tmp_path / "server.log"
    log.write_text("one\n")
    with Watch([reach("other", ENV, sys.executable)], Settings(log=str(log), gpu=False)) as watch:
        watch.wait_for(lambda: watch.snapshot("other").log.size == 4)
        os.kill(collectors("other")[0], signal.SIGSTOP)
        log.rename(tmp_path / "old.log")
        log.write_text("another\n")
        os.kill(collectors("other")[0], signal.SIGKILL)
        watch.wait_for(lambda: len(logs(watch)) == 2)
        assert (logs(watch)[1].text, logs(watch)[1].change) == ("another\n", "rotated")


@pytest.mark.parametrize(
    ("via", "python", "words", "remedy"),
    [
        ("sgmon-no-such-command {}", "", "cannot be started", "--via"),
        (ENV, "sgmon-no-python", "No such file", "--remote-python"),
        (ENV, "false", "exit code 1", "tried again"),
        ("sh -c 'echo Permission denied \\(publickey\\). >&2; exit 255' {}", "", "Permission denied", "ssh-add"),
        ("sh -c 'echo Host key verification failed. >&2; exit 255' {}", "", "Host key", "ssh-keygen -R"),
        ("sh -c 'echo ssh: connect to host x port 22: Connection refused >&2; exit 255' {}", "", "refused", "sshd"),
        ("sh -c 'echo sh: 1: python3: not found >&2; exit 127' {}", "", "not found", "--remote-python"),
    ],
)
def test_why_a_machine_is_not_reached_is_said_with_a_remedy(via, python, words, remedy):
    final = "tried again" not in remedy and "sshd" not in remedy
    with Watch([reach("x", via, python)], Settings(gpu=False)) as watch:
        link = watch.wait_for(lambda: next((one for one in list(watch.links["x"]) if one.why), None))
        assert words in link.why
        assert remedy in link.remedy
        assert link.state == ("failed" if final else "connecting")
        assert watch.stop() < 2.0


def test_an_old_python_is_named(tmp_path):
    old = next(iter(Path.home().glob(".pyenv/versions/3.[67].*/bin/python3")), None)
    if old is None:
        pytest.skip("no Python older than 3.8 is installed here")
    with Watch([reach("x", ENV, str(old))], Settings(gpu=False)) as watch:
        watch.wait_for(lambda: watch.state("x") == "failed")
        assert "too old" in watch.links["x"][-1].why


def test_what_a_login_shell_prints_does_no_harm(tmp_path):
    chatty = 'sh -c \'echo Welcome; printf "\\\\033[31m motd"; shift; exec "$@"\' x {}'
    with Watch([reach("x", chatty, sys.executable)], Settings(gpu=False)) as watch:
        watch.wait_for(lambda: watch.state("x") == "live")


def test_a_machine_that_is_silent_holds_up_neither_the_others_nor_the_end():
    silent = "sh -c 'case $0 in deaf) exec sleep 1000;; *) exec \"$@\";; esac' {}"
    with Watch([reach(name, silent, sys.executable) for name in ("deaf", "well")], Settings(gpu=False)) as watch:
        watch.wait_for(lambda: watch.state("well") == "live")
        assert watch.state("deaf") == "connecting"
        began = time.monotonic()
        assert watch.stop() < 2.0
        assert time.monotonic() - began < 2.0


def test_a_driver_that_hangs_there_is_a_finding_here(nvml_folder, tmp_path):
    """NVML's child runs from the archive, too: by the oldest Python, without pynvml installed."""
    state = State(tmp_path / "nvml.txt")
    state.write("count 2")
    via = f"{ENV} LD_LIBRARY_PATH={nvml_folder} FAKE_NVML_STATE={state.path}"
    nobody = Settings(port=1)  # a simulated server of this machine would bring simulated GPUs
    with Watch([reach("gpus", via, pythons()[1 % len(pythons())])], nobody) as watch:
        watch.wait_for(lambda: len(watch.snapshot("gpus").gpu.gpus) == 2)
        assert watch.snapshot("gpus").gpu.unavailable == ""
        state.write("count 2", "delay nvmlDeviceGetMemoryInfo* 1 60")
        watch.wait_for(lambda: any("hangs" in words for words in said(watch)))
    eventually(lambda: not collectors("gpus"), 20)


def said(watch: Watch) -> list[str]:
    """What readings of GPUs say of the driver, or of one GPU."""
    readings = [event.reading for _, event in list(watch.came) if isinstance(event.reading, GpuReading)]
    return [words for one in readings for words in (one.unavailable, *(gpu.error for gpu in one.gpus))]


def test_py_spy_that_is_not_there_is_said_with_a_remedy(server):
    via = "env -i PATH=/nowhere SGMON_TEST_NODE={}"
    python = next(path for path in ("/usr/bin/python3", sys.executable) if Path(path).exists())
    with Watch([reach("nospy", via, python)], Settings(pid=server.pid, gpu=False)) as watch:
        watch.wait_for(lambda: watch.snapshot("nospy").ranks)
        watch.source.request_stacks(None, 1, False, "key D")
        dumps = watch.wait_for(lambda: watch.snapshot("nospy").stacks)
        if not dumps[0].error:
            pytest.skip("py-spy stands beside the only Python here")
        assert "py-spy is not installed" in dumps[0].error
        assert "pip install py-spy" in dumps[0].missing[0].remedy
