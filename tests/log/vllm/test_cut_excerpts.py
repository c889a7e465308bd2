"""Shapes of vLLM's lines in excerpts that are cut: tracebacks without their begin or end, starts that begin anywhere."""

from __future__ import annotations

import pytest

from sgmon.analyse.log.language import choose
from tests.log.loading import how_it_failed
from tests.log.vllm.loading import fold

CORE = "(EngineCore_DP0 pid=5) ERROR 11-29 12:00:01 [core.py:708] "
WORKER = "(Worker_TP1 pid=8) ERROR 11-29 12:00:00 [multiproc_executor.py:597] "
RAY = "(RayWorkerWrapper pid=33, ip=) ERROR 11-29 12:00:00 worker_base.py:575] "
LOAD = "INFO 11-29 12:00:00 model_runner.py:1072] Starting to load model m...\n"
POST = 'INFO:     10.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK\n'
VERSION = "INFO 11-29 12:0{}:00 [api_server.py:1289] vLLM API server version {}\n"
ARGS = "INFO 11-29 12:00:01 [cli_args.py:300] non-default args: {'model': '/m'}\n"
WAITS = "INFO 11-29 12:00:09 [core.py:438] Waiting for init message from front-end.\n"

#: name: text, phase, kind, line, rank
CRASHES: dict[str, tuple[str, str, str, int, str]] = {
    "an uncaught exception, as torch prints it, without its end": (
        f'{LOAD}[rank0]: Traceback (most recent call last):\n[rank0]:   File "/x/run.py", line 2, in <module>\n',
        *("weights", "exception", 2, "rank0"),
    ),
    "a program of one's own, before the engine said its version": (
        "INFO 11-29 12:00:00 llm_engine.py:70] Initializing an LLM engine with config: model='/m', tensor_parallel_size=4)\n"
        'Traceback (most recent call last):\n  File "/x/serve.py", line 169, in <module>\n    main()\n',
        *("spawn", "exception", 2, ""),
    ),
    "what an engine prints past its logger": (
        "(EngineCore pid=29)     self.worker.init_device()  # type: ignore     \n(EngineCore pid=29)     ^^^^^^^^^    \n"
        '(EngineCore pid=29)   File "/x/vllm/v1/worker/xpu_worker.py", line 90, in init_device      \n',
        *("dist_init", "exception", 2, ""),
    ),
    "an exception without words, whose begin is cut": (
        f"{CORE}    return next(self.gen)\n{CORE}           ^^^^^^\n{CORE}TimeoutError\n",
        *("", "timeout_error", 3, ""),
    ),
    "frames below what torch.compile says": (
        f'{WORKER}\n{WORKER}\n{WORKER}from user code:\n{WORKER}   File "/x/vllm/model_executor/a.py", line 7, in forward\n',
        *("", "exception", 4, "TP1"),
    ),
    "a method of a worker, and an address that is not known": (
        f"{RAY}Error executing method 'init_device'. This might cause deadlock.\n{RAY}Traceback (most recent call last):\n",
        *("dist_init", "exception", 2, "pid33"),
    ),
    "the task of a SkyPilot job": (
        "(task, pid=7) INFO 11-29 12:00:00 [gpu_model_runner.py:1953] Starting to load model /m...\n"
        "(task, pid=7) Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:01<00:01, 1.0it/s]\n"
        "(task, pid=7) ERROR 11-29 12:00:09 [core.py:700] EngineCore failed to start.\n"
        "(task, pid=7) ERROR 11-29 12:00:09 [core.py:700] Traceback (most recent call last):\n"
        "(task, pid=7) ERROR 11-29 12:00:09 [core.py:700] KeyError: 'layers.0.w'\n",
        *("weights", "key_error", 5, ""),
    ),
    "a step that failed, and its input": (
        f"{POST}INFO 11-29 12:00:00 model_runner_base.py:120] Writing input of failed execution to /tmp/err_1.pkl...\n"
        "WARNING 11-29 12:00:00 model_runner_base.py:143] Failed to pickle inputs of failed execution: CUDA error: an illegal"
        " memory access was encountered\n",
        *("serving", "cuda_error", 3, ""),
    ),
    "a step that failed, and no word why": (
        f"{POST}INFO 11-29 12:00:00 model_runner_base.py:120] Writing input of failed execution to /tmp/err_1.pkl...\n",
        *("serving", "engine_failed", 2, ""),
    ),
    "a worker that died, and the loop of its engine": (
        "ERROR 11-29 12:00:00 [multiproc_executor.py:135] Worker proc VllmWorker-3 died unexpectedly, shutting down executor.\n"
        "ERROR 11-29 12:00:01 [core.py:502] EngineCore encountered a fatal error.\n",
        *("serving", "rank_died", 1, ""),
    ),
    "a LoRA rank in the words of the engine": (
        f"{CORE}RuntimeError: Worker failed with error 'LoRA rank 32 is greater than max_lora_rank 16.', please check above\n",
        *("http", "lora_failed", 1, ""),
    ),
    "a kernel that Triton cannot build": (
        f"{CORE}    pm.run(mod)\n{CORE}RuntimeError: PassManager::run failed\n",
        *("", "jit_build_failed", 2, ""),
    ),
    "the warm-up of a Gaudi, with the line ends spelt": (
        f'{WORKER}    self.compile()^M\n{WORKER}  File "/x/vllm_gaudi/v1/worker/hpu_model_runner.py", line 3587, in warmup_model^M\n',
        *("graphs", "exception", 1, "TP1"),
    ),
    "the constructor of a model": (
        f'{WORKER}    return model_class()\n{WORKER}  File "/x/vllm/model_executor/models/qwen2.py", line 453, in __init__\n',
        *("weights", "exception", 1, "TP1"),
    ),
    "an attention backend, asked for a capture": (
        f'{WORKER}    a = b(\n{WORKER}  File "/x/vllm/v1/attention/backends/utils.py", line 3, in build_for_cudagraph_capture\n',
        *("graphs", "exception", 1, "TP1"),
    ),
    "an exception that another one is raised from": (
        f'{CORE}  File "/x/vllm/distributed/shm_broadcast.py", line 4, in acquire_read\n{CORE}TimeoutError\n{CORE}\n'
        f"{CORE}The above exception was the direct cause of the following exception:\n{CORE}\n"
        f'{CORE}Traceback (most recent call last):\n{CORE}  File "/x/vllm/v1/engine/core.py", line 7, in _process_engine_step\n'
        f'{CORE}  File "/x/vllm/v1/engine/core.py", line 9, in execute_model_with_error_logging\n',
        *("serving", "timeout_error", 2, ""),
    ),
    "a step of an old engine that took too long": (
        f"{POST}ERROR 11-29 12:00:00 async_llm_engine.py:532] Engine iteration timed out. This should never happen!\n"
        "ERROR 11-29 12:00:00 async_llm_engine.py:52] Engine background task failed\n",
        *("serving", "rpc_timeout", 2, ""),
    ),
    "the task of an old engine, without the exception": (
        "ERROR 11-29 12:00:00 async_llm_engine.py:52] Engine background task failed\n"
        "ERROR 11-29 12:00:00 async_llm_engine.py:52] Traceback (most recent call last):\n",
        *("serving", "engine_failed", 1, ""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CRASHES)
def test_a_crash_whose_traceback_is_cut(name: str) -> None:
    text, phase, kind, line, rank = CRASHES[name]
    assert how_it_failed(fold(text)) == ("crashed", phase, kind, line, rank)


def test_an_engine_that_waits_for_its_launcher_is_imported() -> None:
    assert fold(WAITS).phase == "spawn"


def test_a_plugin_for_other_devices_is_a_launch() -> None:
    text = "INFO 11-29 12:00:00 __init__.py:30] Available plugins for group vllm.platform_plugins:\n"
    assert fold(f"{text}INFO 11-29 12:00:00 __init__.py:198] Platform plugin ascend is activated\n").phase == "launch"


def test_the_version_of_a_banner_whose_blanks_a_page_has_folded() -> None:
    assert (
        fold("(APIServer pid=1) INFO 11-29 12:00:00 [utils.py:299] █ █ █ ▀▄▀ █ version 0.19.0\n").version == "0.19.0"
    )


def test_a_start_after_a_failed_one_has_its_own_version() -> None:
    failed = f"{CORE}EngineCore failed to start.\n{CORE}ValueError: no\n"
    state = fold(f"{VERSION.format(0, '0.9.0')}{ARGS}{failed}{VERSION.format(5, '0.9.1')}{ARGS}{WAITS}")
    assert (state.runs, state.version, state.phase) == (2, "0.9.1", "spawn")


def test_lines_of_lmcache_are_no_other_familys() -> None:
    chosen = choose(
        "(VllmWorker rank=1 pid=9) [2025-07-18 06:32:49,159] LMCache INFO: LMCache Configuration (config.py:697)\n"
    )
    assert chosen is not None
    assert chosen.family == "vllm"
