"""The seed incident: TP8, 217 lines, "100% Completed | 64/64", silence; one rank elsewhere than the others."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon import demo
from tests.demo.playing import cpu_ticks, gpus, health, log_of, rank_pid, silent, state
from tests.waiting import eventually


@pytest.fixture(scope="module")
def stuck() -> Iterator[demo.DemoServer]:
    with demo.start("stuck-rank", speed=6.0) as server:
        eventually(lambda: log_of(server).count(b"64/64") >= 2)
        silent(server)
        yield server


def test_log_ends_with_the_full_bar(stuck: demo.DemoServer) -> None:
    log = log_of(stuck)
    assert log.count(b"\n") == 217
    assert b"100% Completed | 64/64" in log.rstrip(b"\n").split(b"\r")[-1]
    assert b"Load weight end" not in log and b"KV Cache" not in log


def test_one_rank_reads_a_pipe_and_seven_wait(stuck: demo.DemoServer) -> None:
    waits = []
    for rank in range(8):
        pid = rank_pid(stuck, rank)
        assert state(pid) == "S"
        number, first = Path(f"/proc/{pid}/syscall").read_text().split()[:2]
        target = (Path(f"/proc/{pid}/fd") / str(int(first, 16))) if number == "0" else None
        waits.append("pipe" if target and "pipe:" in str(target.readlink()) else number)
    assert waits == ["202"] * 5 + ["pipe"] + ["202"] * 2  # futex, and read(pipe)


def test_gpu_memory_is_full_and_flat_and_the_port_closed(stuck: demo.DemoServer) -> None:
    assert {gpu["used_bytes"] >> 30 for gpu in gpus(stuck)} == {74}
    assert {gpu["util_percent"] for gpu in gpus(stuck)} == {0}
    assert health(stuck.port) is None


def test_the_ranks_are_connected_to_rank_0(stuck: demo.DemoServer) -> None:
    listening = f"0100007F:{stuck.dist_port:04X}"
    rows = Path(f"/proc/{stuck.pid}/net/tcp").read_text().splitlines()
    assert sum(1 for row in rows if row.split()[2] == listening and row.split()[3] == "01") == 8


def py_spy() -> str:
    found = shutil.which("py-spy") or str(Path(sys.executable).parent / "py-spy")
    if not Path(found).exists():
        pytest.skip("py-spy is not installed")
    return found


def test_stacks_read_like_the_real_ones(stuck: demo.DemoServer) -> None:
    frames = {}
    for rank in (0, 5):
        command = [py_spy(), "dump", "--nonblocking", "--json", "--pid", str(rank_pid(stuck, rank))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        if done.returncode:
            pytest.skip(f"py-spy may not look: {done.stderr.strip()[-100:]}")
        main = next(thread for thread in json.loads(done.stdout) if thread["thread_name"] == "MainThread")
        frames[rank] = [frame["name"] for frame in main["frames"]]
    assert frames[0][:3] == ["barrier", "GroupCoordinator.barrier", "CausalLM._prewarm_mhc_kernels"]
    assert frames[5][:3] == ["compile_kernel", "prewarm_mhc_pre", "CausalLM._prewarm_mhc_kernels"]
    both = ["DefaultModelLoader.load_model", "ModelRunner.load_model", "Scheduler.init_tp_model_worker"]
    for names in frames.values():
        assert [name for name in names if name in both] == both
        assert "run_scheduler_process" in names


def test_nobody_burns_cpu_and_all_live(stuck: demo.DemoServer) -> None:
    pids = [rank_pid(stuck, rank) for rank in range(8)]
    before = [cpu_ticks(pid) for pid in pids]
    time.sleep(1.0)
    assert [cpu_ticks(pid) for pid in pids] == before
