"""A start that goes well, seen from outside as sgmon sees it."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon import demo
from tests.demo.playing import SPEED, gpus, health, log_of, logged, processes, rank_pid
from tests.waiting import eventually

ORDER_0_5_23 = [
    "server_args={'model_path'",
    "Using default HuggingFace chat template",
    "TP0] Init parallel begin.",
    "TP0] sglang is using nccl==",
    "TP0] Init parallel ends. elapsed=",
    "TP0] Memory baseline taken.",
    "TP0] Load weight begin. avail mem=138.31 GB",
    "Multi-thread loading shards:   0% Completed | 0/24",
    "Multi-thread loading shards: 100% Completed | 24/24",
    "TP0] Load weight end. elapsed=",
    "TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens:",
    "TP0] Memory pool end. avail mem=",
    "TP0] Capture target prefill CUDA graph begin. backend=breakable, num_tokens=[4, 8,",
    "\r  0%|          | 0/58 [00:00<?, ?it/s]",  # two writes: another rank's line may come between
    "\rCapturing prefill shape (num_tokens=8192 avail_mem=",
    "TP0] Capture target prefill CUDA graph end. elapsed=",
    "TP0] Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=",
    "Capturing batches (bs=256 avail_mem=",
    "TP0] Capture target decode CUDA graph end. bs=[1, 2,",
    "TP0] max_total_num_tokens=",
    "Engine startup timings (s): load_weight=",
    "INFO:     Started server process [",
    "INFO:     Waiting for application startup.",
    "INFO:     Application startup complete.",
    "INFO:     Uvicorn running on http://127.0.0.1:",
    '"GET /model_info HTTP/1.1" 200 OK',
    "TP0] Prefill batch, #new-seq: 1",
    '"POST /generate HTTP/1.1" 200 OK',
    '"POST /freeze_gc HTTP/1.1" 200 OK',
    "The server is fired up and ready to roll!",
]
ORDER_0_5_9 = [
    "server_args=ServerArgs(model_path=",
    "TP0] Init torch distributed begin.",
    "TP0] Init torch distributed ends. elapsed=",
    "TP0] Load weight begin. avail mem=",
    "Loading safetensors checkpoint shards:   0% Completed | 0/24 [00:00<?, ?it/s]\n",
    "Loading safetensors checkpoint shards: 100% Completed | 24/24",
    "TP0] Load weight end. elapsed=",
    "TP0] Using KV cache dtype: torch.bfloat16",
    "TP0] KV Cache is allocated. #tokens:",
    "TP0] Memory pool end. avail mem=",
    "TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=",
    "Capturing batches (bs=256 avail_mem=",
    "TP0] Registering ",
    "TP0] Capture cuda graph end. Time elapsed: ",
    "TP0] max_total_num_tokens=",
    "INFO:     Uvicorn running on",
    '"GET /model_info HTTP/1.1" 200 OK',
    "The server is fired up and ready to roll!",
]


@pytest.fixture(scope="module")
def ready() -> Iterator[demo.DemoServer]:
    with demo.start("healthy", speed=SPEED) as server:
        assert health(server.port) is None, "the port opens last"
        logged(server, "fired up")
        yield server


def in_order(text: str, parts: list[str]) -> None:
    at = 0
    for part in parts:
        found = text.find(part, at)
        assert found >= 0, f"{part!r} not after {text[max(0, at - 80) : at]!r}"
        at = found


def test_log_order(ready: demo.DemoServer) -> None:
    in_order(log_of(ready).decode(), ORDER_0_5_23)


def test_every_rank_reports(ready: demo.DemoServer) -> None:
    text = log_of(ready).decode()
    for rank in range(4):
        for line in ("Init parallel begin", "Load weight begin", "Load weight end", "KV Cache is allocated"):
            assert re.search(rf" TP{rank}\] {line}", text)
    assert "TP1] max_total_num_tokens" not in text


def test_health_takes_a_second_and_is_logged(ready: demo.DemoServer) -> None:
    assert eventually(lambda: health(ready.port) == 200)
    assert b'"GET /health HTTP/1.1" 200 OK' in log_of(ready)


def test_process_tree(ready: demo.DemoServer) -> None:
    lines = processes(ready)
    assert [line for line in lines if " -m sglang.launch_server --model-path " in line and "--tp 4" in line]
    assert [line for line in lines if "multiprocessing.resource_tracker" in line]
    titles = {line for line in lines if line.startswith("sglang::")}
    assert titles == {*(f"sglang::scheduler_TP{rank}" for rank in range(4)), "sglang::detokenizer"}


def test_a_rank_from_outside(ready: demo.DemoServer) -> None:
    """Title wipes the environment, the log is fd 1 and 2, no shard stays open."""
    proc = Path(f"/proc/{rank_pid(ready, 1)}")
    assert (proc / "comm").read_text().strip() == "sglang::schedul"
    assert not (proc / "environ").read_bytes().strip(b"\0")
    assert [os.readlink(proc / "fd" / fd) for fd in "012"] == ["/dev/null", ready.log, ready.log]
    assert not [fd for fd in (proc / "fd").iterdir() if "safetensors" in os.readlink(fd)]


def test_launcher_names_version_and_gpus(ready: demo.DemoServer) -> None:
    environment = dict(
        part.partition("=")[::2] for part in Path(f"/proc/{ready.pid}/environ").read_text().split("\0")
    )
    assert environment["SGMON_DEMO_GPUS"] == ready.gpus
    site = Path(environment["PYTHONPATH"].split(":")[0])
    assert "Version: 0.5.23" in (site / "sglang-0.5.23.dist-info" / "METADATA").read_text()


def test_gpus_hold_the_model(ready: demo.DemoServer) -> None:
    eventually(lambda: all(gpu["used_bytes"] > 120 << 30 for gpu in gpus(ready)))
    assert [gpu["processes"][0]["pid"] for gpu in gpus(ready)] == [rank_pid(ready, rank) for rank in range(4)]
    assert gpus(ready)[0]["total_bytes"] == 150_754_820_096


def test_older_version_and_sigterm() -> None:
    with demo.start("healthy", speed=SPEED, version="0.5.9", tp=2) as server:
        logged(server, "fired up")
        in_order(log_of(server).decode(), ORDER_0_5_9)
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait() == -9, "0.5.9 kills its own tree, itself included"
        assert b"SIGTERM received. signum=None frame=None. Draining" in log_of(server)
    assert not Path(server.directory).exists()
