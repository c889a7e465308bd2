"""What stands around a failure of vLLM and was taken for it, or hid it: what ended a process, what tells of it again,
programs that pass its words on."""

from __future__ import annotations

import pytest

from sgmon.analyse.log.language import choose
from tests.log.loading import how_it_failed
from tests.log.vllm.loading import crash_of, fold

CORE = "(EngineCore_DP0 pid=5) ERROR 11-29 12:00:01 [core.py:708] "
BIN = '  File "/x/bin/vllm", line 8, in <module>\n    sys.exit(main())\n'
LOAD = "(EngineCore_DP0 pid=5) INFO 11-29 12:00:00 [gpu_model_runner.py:2602] Starting to load model /m...\n"
READY = "(APIServer pid=1) INFO:     Application startup complete.\n"
TOO_SMALL = (
    "max seq len (8192), (4.1 GiB KV cache is needed, which is larger than the available KV cache memory (4.0 GiB)."
)
ENVELOPE = "[2026-11-29T12:00:00Z] (EngineCore_DP0 pid=5) "

#: name: text, phase, kind, line, rank
CRASHES: dict[str, tuple[str, str, str, int, str]] = {
    "a context that is too long, in the words of 0.8 to 0.12": (
        f"{CORE}    raise ValueError(\n{CORE}ValueError: To serve at least one request with the models's {TOO_SMALL}\n",
        *("kv_cache", "not_enough_memory", 2, ""),
    ),
    "the same in newer words": (
        f"{CORE}    raise ValueError(\n{CORE}ValueError: To serve at least one request with the model's {TOO_SMALL}\n",
        *("kv_cache", "not_enough_memory", 2, ""),
    ),
    "an import that fails in the server's own process": (
        f'Traceback (most recent call last):\n{BIN}  File "/x/vllm/config/__init__.py", line 20, in <module>\n'
        "ImportError: cannot import name 'a' from 'transformers'\n",
        *("launch", "import_error", 5, ""),
    ),
    "faulthandler's dump of an only thread": (
        "INFO 11-29 12:00:00 model_runner.py:937] Starting to load model m...\nFatal Python error: Segmentation fault\n\n"
        'Stack (most recent call first):\n  File "/x/torch/cuda/graphs.py", line 77 in capture_begin\n'
        '  File "/x/vllm/worker/model_runner.py", line 725 in capture_model\n',
        *("graphs", "segfault", 2, ""),
    ),
    "a task that was cancelled, and who tells why": (
        '  File "/x/uvicorn/lifespan/on.py", line 137, in receive\n    return await self.queue.get()\n'
        "asyncio.exceptions.CancelledError\n\n"
        "2026-02-11 02:15:04.629 1 kserve ERROR [__main__.py:<module>():337] Failed to start model server: Engine core "
        "initialization failed. See root cause above. Failed core proc(s): {}\n"
        'Traceback (most recent call last):\n  File "/x/huggingfaceserver/__main__.py", line 333, in <module>\n',
        *("", "engine_failed", 5, ""),
    ),
    "frames of the engine alone, and the method that it called": (
        '  File "/x/vllm/executor/executor_base.py", line 53, in __init__\n    self._init_executor()\n'
        '  File "/x/vllm/executor/ray_distributed_executor.py", line 115, in _init_executor\n'
        '    self._run_workers("init_device")\n'
        '  File "/x/vllm/executor/ray_distributed_executor.py", line 522, in _run_workers\n    ray.get(outputs)\n',
        *("dist_init", "exception", 1, ""),
    ),
    "the same after the name of the call": (
        '(EngineCore_DP0 pid=5)   File "/x/vllm/v1/executor/abstract.py", line 75, in initialize_from_config\n'
        '(EngineCore_DP0 pid=5)     self.collective_rpc("compile_or_warm_up_model")\n',
        *("engine_end", "exception", 1, ""),
    ),
    "another process's exception in Ray's words, whose own are cut": (
        f'{ENVELOPE}  File "/x/ray/_private/worker.py", line 958, in get_objects\n{ENVELOPE}    raise value\n'
        f"{ENVELOPE}ray.exceptions.RayTaskError(ValueError): ray::RayWorkerWrapper.execute_method() (pid=7)\n"
        f'{ENVELOPE}  File "/x/vllm/v1/worker/gpu_worker.py", line 260, in init_device\n',
        *("dist_init", "value_error", 3, ""),
    ),
    "the same whole": (
        f'{CORE}Traceback (most recent call last):\n{CORE}  File "/x/ray/_private/worker.py", line 958, in get_objects\n'
        f"{CORE}ray.exceptions.RayTaskError(OSError): ray::RayWorkerWrapper.execute_method() (pid=7)\n"
        f'{CORE}  File "/x/vllm/v1/worker/gpu_worker.py", line 9, in load_model\n{CORE}OSError: no such thing\n',
        *("weights", "os_error", 5, ""),
    ),
    "a traceback of the server's own process behind an envelope, without its end": (
        "Aug 17 18:42:17 host vllm[8]: (APIServer pid=8) Traceback (most recent call last):\n"
        'Aug 17 18:42:18 host vllm[8]: (APIServer pid=8)   File "/x/asyncio/runners.py", line 195, in run\n'
        "Aug 17 18:42:18 host vllm[8]: (APIServer pid=8)     return runner.run(main)\n"
        'Aug 17 18:42:18 host vllm[8]: (APIServer pid=8)   File "/x/vllm/entrypoints/openai/api_server.py", line 7, '
        "in run_server\n",
        *("", "exception", 1, ""),
    ),
    "an engine that a plugin has patched, and a compiler": (
        "(EngineCore_DP1 pid=85) ERROR 01-26 10:28:18 [patch_core.py:68] /x/include/acl.h:146:70: error: use of undeclared "
        "identifier 'executor'\n"
        "(EngineCore_DP1 pid=85) ERROR 01-26 10:28:18 [patch_core.py:68]   146 | AclDestroy(executor);\n"
        "(EngineCore_DP0 pid=84) ERROR 01-26 10:28:26 [multiproc_executor.py:231] Worker proc VllmWorker-0 died unexpectedly\n",
        *("", "jit_build_failed", 1, "DP1"),
    ),
    "a compiler before the exception of who called it": (
        f"{LOAD}/tmp/tmp1/main.c:6:10: fatal error: Python.h: No such file or directory\ncompilation terminated.\n"
        f"{CORE}EngineCore failed to start.\n{CORE}Traceback (most recent call last):\n"
        f"{CORE}subprocess.CalledProcessError: Command '['/usr/bin/gcc', 'main.c']' returned non-zero exit status 1.\n",
        *("weights", "jit_build_failed", 2, ""),
    ),
    "a check in C++ that ends a process": (
        "[X][FATAL] kernels/gemm/measurer.cu(83): Check failed: status == cudaSuccess an illegal memory access was encountered\n"
        "(EngineCore pid=60) ERROR 08-01 10:00:09 [multiproc_executor.py:284] Worker proc VllmWorker-3 died unexpectedly\n",
        *("", "cuda_error", 1, ""),
    ),
    "the method that an engine called, and nothing of its ranks": (
        '(EngineCore_DP0 pid=8)   File "/x/vllm/executor/uniproc_executor.py", line 55, in _init_executor\n'
        '(EngineCore_DP0 pid=8)     self.collective_rpc("load_model")\n'
        '(EngineCore_DP0 pid=8)   File "/x/vllm/executor/uniproc_executor.py", line 83, in collective_rpc\n',
        *("weights", "exception", 1, ""),
    ),
    "the arguments of the server's own process, without the end": (
        f'Traceback (most recent call last):\n{BIN}  File "/x/vllm/entrypoints/cli/main.py", line 46, in main\n'
        '  File "/x/vllm/entrypoints/openai/cli_args.py", line 263, in make_arg_parser\n',
        *("launch", "exception", 1, ""),
    ),
    "frames of the server's own process alone": (
        '(APIServer pid=6)   File "/x/vllm/v1/engine/core_client.py", line 120, in make_async_mp_client\n'
        "(APIServer pid=6)     return AsyncMPClient(*client_args)\n",
        *("", "exception", 1, ""),
    ),
    "a module that Python runs, without its end": (
        "INFO 11-25 10:47:23 llm_engine.py:72] Initializing an LLM engine with config: model='m', tensor_parallel_size=1)\n"
        'Traceback (most recent call last):\n  File "/x/python3.10/runpy.py", line 196, in _run_module_as_main\n',
        *("spawn", "exception", 2, ""),
    ),
    "a trial run of the sampler": (
        '(vllm, pid=2) (EngineCore_0 pid=3) ERROR 08-21 07:45:43 [core.py:700]   File "/x/vllm/v1/worker/gpu_model_runner.py", '
        "line 2470, in _dummy_sampler_run\n(vllm, pid=2) (EngineCore_0 pid=3) ERROR 08-21 07:45:43 [core.py:700]     raise e\n",
        *("profile", "exception", 1, ""),
    ),
    "the same while the engine warms up": (
        f'{CORE}  File "/x/vllm/v1/worker/gpu_worker.py", line 9, in compile_or_warm_up_model\n'
        f'{CORE}  File "/x/vllm/v1/worker/gpu_model_runner.py", line 2470, in _dummy_sampler_run\n',
        *("engine_end", "exception", 1, ""),
    ),
    "an exception that is spelt above its traceback, whose end is cut": (
        "CRITICAL 04-23 02:30:31 [launcher.py:116] MQLLMEngine is already dead, terminating server process\n"
        "ERROR 04-23 02:30:31 [engine.py:160] ValueError('Sampling parameters are missing.')\n"
        "ERROR 04-23 02:30:31 [engine.py:160] Traceback (most recent call last):\n"
        'ERROR 04-23 02:30:31 [engine.py:160]   File "/x/vllm/engine/multiprocessing/engine.py", line 158, in run_engine_loop\n',
        *("serving", "value_error", 2, ""),
    ),
    "torch's heartbeat": (
        "[rank1]:[E ProcessGroupNCCL.cpp:1316] [PG 2 Rank 1] Heartbeat monitor timed out! Process will be terminated.\n"
        "ERROR 08-07 18:42:46 multiproc_worker_utils.py:120] Worker VllmWorkerProcess pid 142 died, exit code: -6\n",
        *("", "collective_timeout", 1, "rank1"),
    ),
    "Triton Inference Server": (
        "INFO 08-06 21:52:44 llm_engine.py:174] Initializing an LLM engine (v0.5.3.post1) with config: model='m'\n"
        'I0806 21:52:45.863589 1 pb_stub.cc:366] "Failed to initialize Python stub: OSError: You are trying to access a gated '
        'repo.\\n403 Client Error."\n',
        *("spawn", "model_access_denied", 2, ""),
    ),
    "a program that runs the worker": (
        "x45[info]INFO 07-23 16:43:22 [async_llm_engine.py:210] Added request 192c.\\n\n"
        "x45[error]worker exited with exit code 136\n",
        *("serving", "ended_by_supervisor", 2, ""),
    ),
    "an engine of another replica, alone in its node's log": (
        "(EngineCore_DP3 pid=9) INFO 11-29 12:00:00 [gpu_model_runner.py:2602] Starting to load model /m...\n"
        "(EngineCore_DP3 pid=9) ERROR 11-29 12:00:01 [core.py:708] EngineCore failed to start.\n"
        "(EngineCore_DP3 pid=9) ERROR 11-29 12:00:01 [core.py:708] Traceback (most recent call last):\n"
        '(EngineCore_DP3 pid=9) ERROR 11-29 12:00:01 [core.py:708]   File "/x/vllm/v1/engine/core.py", line 699, in '
        "run_engine_core\n(EngineCore_DP3 pid=9) ERROR 11-29 12:00:01 [core.py:708] ValueError: no such layer\n",
        *("weights", "value_error", 5, "DP3"),
    ),
    "an actor that cannot be made, its traceback cut": (
        "INFO 07-08 23:11:35 llm_engine.py:60] Initializing an LLM engine with config: model='/m'\n"
        "(Worker pid=42) Exception raised in creation task: The actor died because of an error raised in its creation "
        "task, ray::Worker.__init__() (pid=42, ip=10.0.0.1)\n"
        '(Worker pid=42)   File "/x/vllm/worker/worker.py", line 40, in __init__\n'
        "(Worker pid=42)     _init_distributed_environment(parallel_config, rank,\n",
        *("dist_init", "worker_failed", 2, "pid42"),
    ),
    "an application whose beginning fails": (
        "INFO 10-06 13:50:19 [async_llm.py:180] Torch profiler disabled. AsyncLLM CPU traces will not be collected.\n"
        'ERROR:    Traceback (most recent call last):\n  File "/x/starlette/routing.py", line 694, in lifespan\n'
        '    async with self.lifespan_context(app) as state:\n  File "/x/own/server.py", line 28, in begin\n'
        "RuntimeError: no such voice\nERROR:    Application startup failed. Exiting.\n",
        *("http", "runtime_error", 6, ""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CRASHES)
def test_a_crash_and_its_first_cause(name: str) -> None:
    text, *told = CRASHES[name]
    assert crash_of(text) == ("crashed", *told)


#: name: text, outcome, phase
NO_CRASHES: dict[str, tuple[str, str, str]] = {
    "Ctrl-C in a start": (
        f"{LOAD}^C(APIServer pid=1) Traceback (most recent call last):\n(APIServer pid=1) {BIN}"
        "(APIServer pid=1) KeyboardInterrupt\n"
        f'{CORE}EngineCore failed to start.\n{CORE}Traceback (most recent call last):\n{CORE}  File "/x/vllm/v1/engine/core.py"'
        f", line 699, in run_engine_core\n{CORE}KeyboardInterrupt\n",
        *("unfinished", "weights"),
    ),
    "tasks that are cancelled when a server ends": (
        f"{READY}(APIServer pid=1) INFO:     Shutting down\n(APIServer pid=1) ERROR:    Traceback (most recent call last):\n"
        '(APIServer pid=1)   File "/x/starlette/routing.py", line 699, in lifespan\n(APIServer pid=1)     await receive()\n'
        "(APIServer pid=1) asyncio.exceptions.CancelledError\n",
        *("ready", "serving"),
    ),
    "a program that calls the engine itself": (
        "INFO 02-18 08:50:25 llm_engine.py:429] init engine (profile, create kv cache, warmup model) took 3.87 seconds\n"
        "Processed prompts: 100%|####| 4/4 [00:00<00:00,  8.46it/s, est. speed input: 46.55 toks/s]\n"
        "Prompt: 'Tell me of RuntimeError: CUDA error', Generated text: ' It is bad'\n",
        *("ready", "serving"),
    ),
    "NCCL's lines alone, behind the name of a worker of old releases": (
        "(RayWorkerVllm pid=4298) host-0:4298:4298 [3] NCCL INFO NET/Plugin: Loaded net plugin IBext (v5)\n"
        "(RayWorkerVllm pid=4229) host-0:4229:4485 [2] NCCL INFO 2 coll channels, 0 nvls channels, 2 p2p channels\n",
        *("unfinished", "dist_init"),
    ),
    "a line of NCCL to which a record is glued": (
        "host-7b9:958:958 [1] NCCL INFO Channel 01/0 : (APIServer pid=1) DEBUG 08-09 20:55:10 [v1/engine/utils.py:1262] Waiting "
        "for 1 local, 0 remote core engine proc(s) to start.\n"
        "(APIServer pid=1) DEBUG 08-09 20:55:20 [v1/engine/utils.py:1262] Waiting for 1 local, 0 remote core engine proc(s)\n",
        *("unfinished", "dist_init"),
    ),
    "workers that an old release is about to start": (
        "INFO 09-13 00:35:49 custom_cache_manager.py:17] Setting Triton cache manager to: vllm.triton_utils:CustomCacheManager\n",
        *("unfinished", "spawn"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_CRASHES)
def test_what_is_no_crash(name: str) -> None:
    text, outcome, phase = NO_CRASHES[name]
    state = fold(text)
    assert (state.family, state.outcome, state.phase, state.error) == ("vllm", outcome, phase, None)


def test_ctrl_c_is_an_end_that_was_asked_for() -> None:
    assert fold(NO_CRASHES["Ctrl-C in a start"][0]).sigterm_line == 2


@pytest.mark.parametrize(
    "line",
    [
        "vllm: error: unrecognized arguments: --temperature 0.8",
        "usage: api_server.py [-h] [--host HOST] [--port PORT] [--worker-use-ray]",
        "(RayWorkerVllm pid=4298) host-0:4298:4298 [3] NCCL INFO P2P Chunksize set to 131072",
    ],
)
def test_who_speaks(line: str) -> None:
    family = choose(line, None)
    assert family is not None and family.family == "vllm"


@pytest.mark.parametrize(
    "around",
    ['{{"log":"{}\\n","stream":"stderr","time":"2026-03-11T17:57:09.8Z"}}', "\x1b[32m{}\x1b[0m"],
    ids=["docker's file", "coloured"],
)
def test_lines_of_a_server_without_names_behind_marks(around: str) -> None:
    lines = ("INFO 11-20 10:45:55 model_runner.py:680] Starting to load model /m...", "Killed")
    state = fold("".join(around.format(line) + "\n" for line in lines))
    assert how_it_failed(state) == ("crashed", "weights", "killed_sigkill", 2, "")
    assert state.family == "vllm"
