"""The scenarios in which something goes wrong: what is seen from outside tells them apart."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import urllib.request
from pathlib import Path

import pytest

from sgmon import demo
from sgmon.demo import DemoServer
from tests.demo.playing import (
    SPEED,
    cpu_ticks,
    eventually,
    gpus,
    health,
    log_of,
    logged,
    proc,
    processes,
    rank_pid,
    silent,
    state,
    zombies,
)

pytestmark = pytest.mark.slow


def test_crash_ends_with_137_and_names_the_rank() -> None:
    with demo.start("crash", speed=SPEED) as server:
        assert server.wait() == -9
        text = log_of(server).decode()
    assert "TP2] Scheduler hit an exception: Traceback (most recent call last):" in text
    assert text.rindex("Received sigquit from a child process") > text.index("SafetensorError: ")
    # a rank that is not killed yet may still draw its bar after it
    assert f"include_parent=True, pid={server.pid}\n" in text[text.rindex("Received sigquit from a child process") :]


def test_oom_speaks_like_torch() -> None:
    with demo.start("oom", speed=SPEED) as server:
        assert server.wait() == -9
        text = log_of(server).decode()
        eventually(lambda: all(gpu["used_bytes"] == 0 for gpu in gpus(server)))
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.72 GiB. GPU " in text
    assert "KV Cache is allocated" not in text


def test_killed_rank_is_noticed_and_exit_is_1() -> None:
    with demo.start("killed", speed=SPEED) as server:
        assert server.wait() == 1
        text = log_of(server).decode()
    assert "RuntimeError: Rank 1 scheduler died during initialization (exit code: -9)." in text
    assert text.index("kill_process_tree called") < text.index("RuntimeError: Rank 1"), "as recorded"


def test_killed_rank_is_never_noticed_by_0_5_9() -> None:
    with demo.start("killed", speed=SPEED, version="0.5.9") as server:
        eventually(lambda: zombies(server) == 1)  # it may be one before this machine has looked
        logged(server, "TP0] Load weight end")
        assert zombies(server) == 1
        assert rank_pid(server, 0) and "sglang::scheduler_TP1" not in processes(server)
        assert state(server.pid) == "S"


def test_stopped_rank_holds_the_others_up_and_goes_on() -> None:
    with demo.start("stopped", speed=SPEED) as server:
        pid = rank_pid(server, 1)
        eventually(lambda: state(pid) == "T")
        logged(server, "TP0] Load weight end")
        eventually(lambda: proc(rank_pid(server, 0), "syscall").startswith("202 "))
        assert b"TP1] Load weight end" not in log_of(server)
        os.kill(pid, signal.SIGCONT)
        logged(server, "fired up")


def calls(pid: int) -> int:
    """Read system calls of a process so far."""
    return int(proc(pid, "io").split("syscr: ")[1].split()[0])


def test_missing_peer_polls_its_store() -> None:
    with demo.start("missing-peer", speed=SPEED) as server:
        first = rank_pid(server, 0)
        for rank in range(4):
            logged(server, f"TP{rank}] Init parallel begin.")
        silent(server)
        before, began = calls(first), time.monotonic()
        eventually(lambda: calls(first) > before + 15)
        assert (calls(first) - before) / (time.monotonic() - began) < 50
        assert {proc(rank_pid(server, rank), "wchan") for rank in (1, 2, 3)} == {"wait_woken"}
        listening = f":{server.dist_port:04X} "
        assert [row for row in proc(first, "net/tcp").splitlines() if listening in row and " 0A " in row]
        assert b"Init parallel ends" not in log_of(server)
        assert "--nnodes 2" in " ".join(processes(server))


def test_nccl_hang_spins_on_the_gpu() -> None:
    with demo.start("nccl-hang", speed=SPEED) as server:
        eventually(lambda: [gpu["util_percent"] for gpu in gpus(server)] == [100, 100, 100, 0])
        power = [[gpu["power_w"] for gpu in gpus(server)][:3]]
        ticks = cpu_ticks(rank_pid(server, 0))
        eventually(lambda: cpu_ticks(rank_pid(server, 0)) > ticks + 10)
        power.append([gpu["power_w"] for gpu in gpus(server)][:3])
        assert power[0] == power[1], "flat to the watt"
        assert proc(rank_pid(server, 3), "syscall").startswith("202 ")


def compiles(server: DemoServer) -> bool:
    """At this moment: each of the compilers runs for half a second only."""
    running, said = processes(server), log_of(server)
    with contextlib.suppress(OSError):  # it ends meanwhile
        names = {proc(pid, "comm").strip() for line, pid in running.items() if "cicc --c++17" in line}
        held = [os.readlink(fd) for fd in Path(f"/proc/{rank_pid(server, 1)}/fd").iterdir()]
        is_begun = b"| 0/58 [" in said and b"| 1/58 [" not in said
        builds = any(line.startswith("ninja -v -C ") for line in running)
        return names == {"cicc"} and builds and is_begun and any("norm.lock" in file for file in held)
    return False


def test_compiling_has_compilers_below_one_rank_and_ends() -> None:
    for speed in (25.0, 4.0):  # on a loaded machine the moment may pass between two looks
        with demo.start("compiling", speed=speed) as server:
            seen = eventually(lambda: compiles(server) or (b"fired up" in log_of(server) and "too late"))
            assert b"\x1b" not in log_of(server)
            logged(server, "fired up")
        if seen is True:
            break
    assert seen is True


def test_port_taken_is_found_at_the_end() -> None:
    with demo.start("port-taken", speed=40.0) as server:
        eventually(lambda: health(server.port) == 404)
        logged(server, f"ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', {server.port})")
        logged(server, "INFO:     Waiting for application shutdown.")
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait() == -9, "SIGTERM is ignored; it ends after 120 tries of the warm-up"
        assert b"Initialization failed. warmup error: Traceback" in log_of(server)


def test_warmup_stuck_says_503() -> None:
    with demo.start("warmup-stuck", speed=SPEED) as server:
        logged(server, '"GET /model_info HTTP/1.1" 200 OK')
        silent(server)
        eventually(lambda: health(server.port) == 503)
        eventually(lambda: {proc(rank_pid(server, rank), "syscall").split()[0] for rank in range(4)} == {"202"})
        assert b"fired up" not in log_of(server)


def test_gate_waits_until_it_is_opened() -> None:
    with demo.start("gate", speed=SPEED) as server:
        logged(server, "TP0] Gated launch waiting for activation. rank=0")
        assert f"--gated-launch-port {server.gate_port}" in " ".join(processes(server))
        url = f"http://127.0.0.1:{server.gate_port}/gate/activate"
        urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=5).close()
        logged(server, "TP0] Gated launch activated. elapsed=")
        logged(server, "fired up")


def test_slow_disk_keeps_reading() -> None:
    with demo.start("slow-disk", speed=2.0) as server:
        logged(server, "TP0] Load weight begin")
        pids = [rank_pid(server, rank) for rank in range(4)]

        def read() -> int:
            return sum(int(proc(pid, "io").split("read_bytes: ")[1].split()[0]) for pid in pids)

        eventually(lambda: "safetensors" in proc(pids[0], "maps"))
        before = read()
        eventually(lambda: read() > before + 100_000)


@pytest.mark.parametrize("name", sorted(demo.SCENARIOS))
def test_every_scenario_is_described_in_one_line(name: str) -> None:
    assert demo.SCENARIOS[name] and "\n" not in demo.SCENARIOS[name]
    assert len(demo.SCENARIOS[name]) < 105
