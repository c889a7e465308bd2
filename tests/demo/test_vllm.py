"""A played vLLM start, seen from outside: its log, titles, port; and a rank that never ends its load."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest

from sgmon import demo
from tests.demo.playing import SPEED, cpu_ticks, health, log_of, logged, proc, processes, silent, state
from tests.demo.test_healthy import in_order
from tests.waiting import eventually

ORDER = [
    "█▄█▀ █     █     █     █  model   ",
    "non-default args: {'model_tag': ",
    "Resolved architecture: Qwen3MoeForCausalLM",
    "Initializing a V1 LLM engine (v0.32.0) with config: model=",
    "(Worker pid=",
    "world_size=4 rank=0 local_rank=0 distributed_init_method=tcp://127.0.0.1:",
    "rank 0 in world size 4 is assigned as DP rank 0, PP rank 0,",
    "Loading safetensors checkpoint shards:   0% Completed | 0/24 [00:00<?, ?it/s]\n",
    "Loading safetensors checkpoint shards: 100% Completed | 24/24",
    "Loading weights took ",
    "Dynamo bytecode transform time: ",
    "torch.compile took ",
    "Available KV cache memory: ",
    "GPU KV cache size: ",
    "\rCapturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%",
    "\rCapturing CUDA graphs (decode, FULL): 100%",
    "init engine (profile, create kv cache, warmup model) took ",
    "Starting vLLM server on http://127.0.0.1:",
    "\nINFO:     Application startup complete.\n",
]


@pytest.fixture(scope="module")
def ready() -> Iterator[demo.DemoServer]:
    with demo.start("vllm", speed=SPEED) as server:
        assert health(server.port) is None
        logged(server, "Application startup complete.")
        yield server


def titled(server: demo.DemoServer, title: str) -> int:
    return eventually(lambda: processes(server).get(title))


def test_log_order(ready: demo.DemoServer) -> None:
    in_order(log_of(ready).decode(), ORDER)


def test_prefixes_follow_the_titles(ready: demo.DemoServer) -> None:
    text = log_of(ready).decode()
    pid = titled(ready, "VLLM::Worker_TP3")
    assert f"(Worker pid={pid}) INFO " in text and f"(Worker_TP3 pid={pid}) INFO " in text
    assert re.search(rf"^\(APIServer pid={ready.pid}\) INFO \d\d-\d\d \d\d:\d\d:\d\d \[", text, re.M)
    assert text.count("Available KV cache memory") == 1, "one rank speaks for all"


def test_process_tree(ready: demo.DemoServer) -> None:
    found = processes(ready)
    assert [line for line in found if "/bin/vllm serve " in line and "-tp 4" in line]
    titles = {line for line in found if line.startswith("VLLM::")}
    assert titles == {"VLLM::EngineCore", *(f"VLLM::Worker_TP{rank}" for rank in range(4))}
    engine = found["VLLM::EngineCore"]
    assert {proc(found[f"VLLM::Worker_TP{rank}"], "stat").rpartition(")")[2].split()[1] for rank in range(4)} == {
        str(engine)
    }


def test_health_says_200_at_once(ready: demo.DemoServer) -> None:
    assert eventually(lambda: health(ready.port) == 200)
    assert b"\nINFO:     127.0.0.1:" in log_of(ready)


def listens(server: demo.DemoServer) -> bool:
    rows = proc(server.pid, "net/tcp").splitlines()
    return any(f":{server.port:04X} " in row.split(maxsplit=2)[1] + " " and " 0A " in row for row in rows)


def test_a_rank_never_ends_its_load() -> None:
    with demo.start("vllm-stuck-rank", speed=SPEED) as server:
        logged(server, "Worker_TP3 pid=")
        logged(server, "24/24")
        log = silent(server)
        assert b"TP2 pid" in log and log.count(b"Model loading took") == 3 and b"torch.compile took" not in log
        assert not listens(server), "bound at launch, and listening last"
        stuck = titled(server, "VLLM::Worker_TP2")
        assert state(stuck) == "S" and proc(stuck, "syscall").startswith("0 ")
        before = cpu_ticks(stuck)
        eventually(lambda: "poll" in proc(titled(server, "VLLM::Worker_TP0"), "wchan"))
        assert cpu_ticks(stuck) == before


def test_sigterm_of_a_ready_server_is_a_good_end() -> None:
    with demo.start("vllm", speed=SPEED, tp=2) as server:
        logged(server, "Application startup complete.")
        eventually(lambda: health(server.port) == 200)
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait() == 0
        assert log_of(server).rstrip().endswith(f"Finished server process [{server.pid}]".encode())
