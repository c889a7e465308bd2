"""Shapes of lines of vLLM that were read wrongly in public reports: windows into starts, older releases, other devices."""

from __future__ import annotations

import pytest

from sgmon.analyse.log.fold import LogFold
from sgmon.analyse.log.summary import as_json, next_step
from sgmon.model import LogReading
from sgmon.servers.vllm.log import RULES
from tests.log.vllm.loading import crash_of, fold

DIED = "ERROR 11-29 12:00:00 client.py:282] RuntimeError('Engine process (pid 77) died.')\n"
DEAD = "CRITICAL 11-29 12:00:04 launcher.py:99] MQLLMEngine is already dead, terminating server process\n"
CORE = "(EngineCore_DP0 pid=5) ERROR 11-29 12:00:01 [core.py:708] "
WORKER = "(Worker_TP1 pid=8) ERROR 11-29 12:00:00 [multiproc_executor.py:597] "
PYDANTIC = "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n  Value error, "
POST = 'INFO:     10.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK\n'

#: name: text, phase, kind, line, rank
CRASHES: dict[str, tuple[str, str, str, int, str]] = {
    "a traceback of an engine's process without its end": (
        "(EngineCore_DP0 pid=5) Process EngineCore_DP0:\n(EngineCore_DP0 pid=5) Traceback (most recent call last):\n"
        '(EngineCore_DP0 pid=5)   File "/x/vllm/v1/engine/core.py", line 788, in run_engine_core\n',
        *("", "exception", 2, ""),
    ),
    "a worker's frames alone": (
        "(EngineCore_0 pid=5) (RayWorkerWrapper pid=33) ERROR 11-29 12:00:00 [worker_base.py:619]     self.a(b)\n"
        "(EngineCore_0 pid=5) (RayWorkerWrapper pid=33) ERROR 11-29 12:00:00 [worker_base.py:619]   "
        'File "/x/vllm/v1/worker/gpu_model_runner.py", line 2927, in initialize_kv_cache\n',
        *("kv_cache", "exception", 1, "pid33"),
    ),
    "an exception alone, and what it printed": (
        f"{WORKER}RuntimeError: Ninja build failed. Ninja output:\n{WORKER}[1/11] /x/nvcc --generate\n",
        *("", "jit_build_failed", 1, "TP1"),
    ),
    "frames without any prefix": (
        '  File "/x/vllm/worker/worker.py", line 200, in init_device\n    self.group()\n'
        "RuntimeError: NCCL error: unhandled system error\n",
        *("dist_init", "nccl_error", 3, ""),
    ),
    "lines that were pasted with a blank line after each": (
        '  File "/x/vllm/model_executor/layers/linear.py", line 589, in weight_loader\n\n    assert a == b\n\n'
        "AssertionError\n\nTraceback (most recent call last):\n\n"
        '  File "/x/vllm/entrypoints/openai/api_server.py", line 9, in <module>\n\n'
        "RuntimeError: Engine process failed to start. See stack trace for the root cause.\n",
        *("weights", "assertion_error", 5, ""),
    ),
    "a class of exceptions that begins with a small letter": (
        f"{CORE}EngineCore failed to start.\n{CORE}Traceback (most recent call last):\n"
        f'{CORE}  File "/x/vllm/distributed/kv_transfer/kv_connector/v1/nixl_connector.py", line 6, in register_kv_caches\n'
        f"{CORE}nixl._bindings.nixlBackendError: NIXL_ERR_BACKEND\n",
        *("kv_cache", "nixl_backend_error", 4, ""),
    ),
    "a name that a tool has cut": (
        "(APIServer) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        *("", "engine_failed", 1, ""),
    ),
    "an engine of release 0.6 that died": (
        f"INFO 11-29 11:59:00 engine.py:275] Added request c-1.\n{DIED}{DEAD}",
        *("serving", "engine_died", 2, ""),
    ),
    "an engine's loop of release 0.6 that died": (
        "ERROR 11-29 12:00:00 client.py:250] RuntimeError('Engine loop has died')\n"
        "ERROR 11-29 12:00:00 client.py:250] Traceback (most recent call last):\n"
        f"ERROR 11-29 12:00:00 client.py:250] RuntimeError: Engine loop has died\n{DEAD}",
        *("serving", "engine_failed", 3, ""),
    ),
    "a dead engine, and what a destructor says": (
        "(APIServer pid=1) ERROR 11-29 12:00:00 [async_llm.py:430] vllm.v1.engine.exceptions.EngineDeadError: See above\n"
        "Failed: Cuda error /x/custom_all_reduce.cuh:594 'an illegal memory access was encountered'\n",
        *("serving", "cuda_error", 2, ""),
    ),
    "a LoRA adapter that is not there": (
        f"{CORE}Traceback (most recent call last):\n{CORE}ValueError: Loading lora a failed: No adapter found for /a\n",
        *("http", "lora_failed", 2, ""),
    ),
    "weights of another size": (
        f"{CORE}EngineCore failed to start.\n{CORE}Traceback (most recent call last):\n"
        f"{CORE}AssertionError: Tried to load weights of size torch.Size([3, 1])to a parameter of size torch.Size([5, 2])\n",
        *("weights", "weights_mismatch", 3, ""),
    ),
    "a kernel that was not built for this GPU": (
        f"{WORKER}Traceback (most recent call last):\n"
        f"{WORKER}NotImplementedError: No compiled cutlass_scaled_mm for CUDA device capability: 120.\n",
        *("", "no_kernel_image", 2, "TP1"),
    ),
    "an architecture that the library does not know": (
        f"INFO 11-29 12:00:00 [api_server.py:1] vLLM API server version 0.10.0\nTraceback (most recent call last):\n{PYDANTIC}"
        "The checkpoint you are trying to load has model type `x` but Transformers does not recognize this architecture.\n",
        *("launch", "model_unsupported", 4, ""),
    ),
    "no architecture at all": (
        f'Traceback (most recent call last):\n  File "/x/bin/vllm", line 8, in <module>\n{PYDANTIC}'
        "No model architectures are specified\n",
        *("launch", "model_unsupported", 4, ""),
    ),
    "a compiled extension of another torch": (
        'Traceback (most recent call last):\n  File "/x/bin/vllm", line 5, in <module>\n'
        "ImportError: /x/vllm/_C.abi3.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSsb\n",
        *("launch", "extension_mismatch", 3, ""),
    ),
    "the compiler's own exception": (
        f"{CORE}Traceback (most recent call last):\n"
        f"{CORE}torch._inductor.exc.InductorError: CalledProcessError: Command '['/usr/bin/gcc', 'main.c']' returned 1.\n",
        *("compile", "jit_build_failed", 2, ""),
    ),
    "an Ascend device's message before the traceback": (
        "ERROR 12-17 09:31:58 [engine.py:458] [ERROR] 2025-12-17-09:31:53 (PID:53, Device:0) ERR02200 DIST call hccl failed.\n"
        "ERROR 12-17 09:31:58 [engine.py:458] EH9999: Inner Error!\n"
        "ERROR 12-17 09:31:58 [engine.py:458] Traceback (most recent call last):\n",
        *("", "npu_error", 1, ""),
    ),
    "a GGUF file behind another program's prefix": (
        '[llm]   | (APIServer pid=1) Traceback (most recent call last):\n'
        '[llm]   | (APIServer pid=1)   File "/x/bin/vllm", line 10, in <module>\n'
        "[llm]   | (APIServer pid=1) ValueError: GGUF model with architecture qwen3vlmoe is not supported yet.\n",
        *("launch", "model_unsupported", 3, ""),
    ),
    "a tag between the name and the level (VLLM_LOGGING_PREFIX)": (
        f'(Worker pid=22) [Stage-0] {WORKER[23:]}  File "/x/vllm/v1/worker/gpu_worker.py", line 2, in init_device\n'
        f"(Worker pid=22) [Stage-0] {WORKER[23:]}ValueError: Free memory on device (1/9 GiB) on startup is less than desired"
        " GPU memory utilization (0.9, 8 GiB).\n",
        *("dist_init", "memory_held", 2, "pid22"),
    ),
    "a stage of vLLM-omni": (
        "(StageEngineCoreProc pid=2) ERROR 05-02 08:58:53 [stage_engine_core_proc.py:104] StageEngineCoreProc failed to start.\n",
        *("", "engine_failed", 1, ""),
    ),
    "a worker below an actor whose name has parentheses": (
        f"(MapWorker(MapBatches(A)) pid=9) (Worker pid=22) {WORKER[23:]}WorkerProc failed to start.\n",
        *("", "worker_failed", 1, "pid22"),
    ),
    "a rank that ended while another went on": (
        f"{WORKER}ValueError: No valid attention backend found for cuda with C(). Reasons: {{}}.\n"
        "(Worker_TP0 pid=7) INFO 11-29 12:00:01 [r.py:1] Starting to load model m...\n",
        *("weights", "attention_unsupported", 1, "TP1"),
    ),
    "ptxas": (
        f"{CORE}Traceback (most recent call last):\n{CORE}triton.runtime.errors.PTXASError: PTXAS error: Internal\n",
        *("", "jit_build_failed", 2, ""),
    ),
    "a rendezvous of the first group": (
        f"{WORKER}torch.distributed.DistStoreError: wait timeout after 1800000ms, keys: /default_pg/0//2//cpu//0/2\n",
        *("dist_init", "store_wait_timeout", 1, "TP1"),
    ),
    "an engine of 0.8 that was told of its workers' end": (
        "CRITICAL 04-11 13:45:00 [core_client.py:361] Got fatal signal from worker processes, shutting down.\n",
        *("", "worker_failed", 1, ""),
    ),
    "a request of which the engine dies": (
        "(EngineCore_0 pid=6) ERROR 11-29 12:00:00 [dump_input.py:69] Dumping input data for V1 LLM engine (v0.10.1) with x\n",
        *("serving", "engine_failed", 1, ""),
    ),
    "oneCCL": (
        "INFO 11-29 12:00:00 llm_engine.py:247] Initializing an LLM engine (v0.6.3) with config: model='m'\n"
        '[rank0]: Traceback (most recent call last):\n[rank0]:   File "/x/vllm/worker/xpu_worker.py", line 8, in init_device\n'
        "[rank0]: RuntimeError: oneCCL: exec.cpp:122 start_workers: EXCEPTION: failed to start worker # 0\n",
        *("dist_init", "oneccl_error", 4, "rank0"),
    ),
    "a worker while it serves": (
        f"{POST}(VllmWorker rank=1 pid=8) ERROR 11-29 12:00:00 multiproc_executor.py:401] WorkerProc hit an exception: %s\n"
        "(VllmWorker rank=1 pid=8) ERROR 11-29 12:00:00 multiproc_executor.py:401] Traceback (most recent call last):\n",
        *("serving", "worker_failed", 2, "TP1"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CRASHES)
def test_a_crash_and_its_first_cause(name: str) -> None:
    text, *told = CRASHES[name]
    assert crash_of(text) == ("crashed", *told)


#: name: text, outcome, phase, last milestone of each rank
WINDOWS: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "release 0.10.1, whose names have blanks": (
        "(EngineCore_0 pid=6) (VllmWorker TP1 pid=9) INFO 11-29 12:00:00 [d.py:267] Loading weights took 1.13 seconds\n"
        "(VllmWorker DP1 TP0 EP2 pid=7) INFO 11-29 12:00:00 [d.py:267] Loading weights took 1.13 seconds\n",
        *("unfinished", "weights", {"TP1": "load_end", "DP1 TP0": "load_end"}),
    ),
    "workers of a fork below Ray": (
        "(WrapperWithLoadBit pid=74) INFO 11-29 12:00:00 model_runner.py:266] Loading model weights took 3.5 GB [repeated 7x"
        " across cluster]\n",
        *("unfinished", "kv_cache", {"pid74": "load_end"}),
    ),
    "a box of a terminal's program": (
        "│ INFO 03-21 20:15:45 [worker.py:267] Memory profiling takes 34.26 seconds     │\n"
        "│ INFO 03-21 20:15:46 [executor_base.py:111] # cuda blocks: 7191, # CPU blocks: 512     │\n",
        *("unfinished", "graphs", {"": "kv_alloc"}),
    ),
    "an application's own lines behind compose's name": (
        "app-llm-1  | 2024-12-20 00:49:31,004 - app.pipelines.llm - INFO - Initializing\n"
        "app-llm-1  | 2024-12-20 00:49:31,011 - app.pipelines.llm - INFO - Using BFloat16 precision\n"
        "app-llm-1  | INFO 12-20 00:49:35 config.py:887] Defaulting to use mp for distributed inference\n"
        "app-llm-1  | INFO 12-20 00:49:39 model_runner.py:1014] Starting to load model m...\n",
        *("unfinished", "weights", {"": "load_begin"}),
    ),
    "both lines of a load, from 0.9.2 to 0.11": (
        "(VllmWorker rank=1 pid=32) INFO 08-16 11:44:50 [gpu_model_runner.py:1843] Starting to load model m...\n"
        "(VllmWorker rank=1 pid=32) INFO 08-16 11:44:55 [gpu_model_runner.py:1875] Loading model from scratch...\n",
        *("unfinished", "weights", {"TP1": "load_begin"}),
    ),
    "a Gaudi": (
        "INFO 08-02 17:37:52 habana_model_runner.py:430] Pre-loading model weights on hpu:0 took 14.97 GiB of device memory\n"
        "INFO 08-02 17:37:59 habana_model_runner.py:1066] [Warmup][Graph/Prompt][1/24] batch_size:4 seq_len:1024\n",
        *("unfinished", "graphs", {"": "graph_progress"}),
    ),
    "bars alone": (
        "Capturing CUDA graphs (decode, FULL):  46%|####5     | 16/35 [00:02<00:02,  8.85it/s]\n",
        *("unfinished", "graphs", {"": "graph_progress"}),
    ),
    "the look for a platform": (
        "DEBUG 03-31 16:14:34 [__init__.py:28] No plugins for group vllm.platform_plugins found.\n"
        "DEBUG 03-31 16:14:34 [__init__.py:52] Checking if CUDA platform is available.\n"
        "DEBUG 03-31 16:14:34 [__init__.py:76] Exception happens when checking CUDA platform: NVML Shared Library Not Found\n",
        *("unfinished", "launch", {"": "launch"}),
    ),
    "a new process's first line is no step back": (
        "INFO 05-07 02:57:50 [shm_broadcast.py:266] vLLM message queue communication handle: Handle()\n"
        "INFO 05-07 02:57:53 [__init__.py:239] Automatically detected platform cuda.\n",
        *("unfinished", "dist_init", {"": "mq_connect"}),
    ),
    "a TPU compiles for each size": (
        "(EngineCore pid=9) INFO 06-03 07:40:50 [compilation_manager.py:100] Precompile worker0 backbone --> {'num_tokens': 32}\n"
        "(EngineCore pid=9) INFO 06-03 07:40:52 [compilation_manager.py:105] Compilation finished in 1.98 [secs].\n",
        *("unfinished", "graphs", {"": "graph_progress"}),
    ),
    "graphs one by one": (
        "(Worker_TP0 pid=3) DEBUG 02-24 02:39:34 [compilation/cuda_graph.py:239] Capturing a cudagraph on (FULL,B())\n"
        "(Worker_TP2 pid=5) DEBUG 02-24 02:39:34 [compilation/cuda_graph.py:239] Capturing a cudagraph on (FULL,B())\n",
        *("unfinished", "graphs", {"TP0": "graph_progress", "TP2": "graph_progress"}),
    ),
    "NCCL behind a worker's name": (
        "(RayWorkerWrapper pid=539) h:539:539 [6] NCCL INFO ncclCommInitRank comm 0x2f rank 6 nranks 8 - Init START\n",
        *("unfinished", "dist_init", {"pid539": "nccl_comm"}),
    ),
    "the cache is made known to the connector": (
        "INFO 11-29 12:00:01 [kv_cache_utils.py:716] GPU KV cache size: 496,400 tokens\n"
        "INFO 11-29 12:00:02 [nixl_connector.py:586] Registering KV_Caches: use_mla: False\n",
        *("unfinished", "kv_cache", {"": "kv_register"}),
    ),
    "a request that failed": (
        POST.replace("200 OK", "500 Internal Server Error") + "ERROR:    Exception in ASGI application\n"
        'Traceback (most recent call last):\n  File "/x/vllm/lora/peft_helper.py", line 42, in validate\n'
        f"ValueError: no\n{POST}",
        *("ready", "serving", {"": "ready"}),
    ),
    "a request whose text is a traceback": (
        f"INFO 11-29 11:59:00 [async_llm.py:228] Added request c-0.\n{POST}"
        "INFO 11-29 12:00:00 [logger.py:39] Received request c-1: prompt: 'Traceback (most recent call last): CUDA"
        " out of memory. EngineCore failed to start.', params: SamplingParams(n=1)\n",
        *("ready", "serving", {"": "ready"}),
    ),
    "a client's call that failed": (
        f"{CORE}Invocation of collective_rpc method failed\n{CORE}Traceback (most recent call last):\n"
        f"{CORE}RuntimeError: no group\n{POST}",
        *("ready", "serving", {"": "ready"}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_into_a_start(name: str) -> None:
    text, outcome, phase, ranks = WINDOWS[name]
    state = fold(text)
    assert (state.family, state.outcome, state.phase, state.error) == ("vllm", outcome, phase, None)
    assert {rank.rank: rank.milestone for rank in state.ranks} == ranks


def test_the_shards_of_a_log_without_its_arguments() -> None:
    text = (
        "INFO 11-29 12:00:00 llm_engine.py:75] Initializing an LLM engine (v0.4.0) with config: model=/m, seed=0, "
        "tensor_parallel_size=4, quantization=None)\n"
    )
    assert as_json(fold(text), "a")["topology"] == {"tp": 4, "dp": None, "pp": None, "ep": None, "nnodes": None}


def test_the_next_step_names_flags_of_this_family() -> None:
    state = fold(f"{WORKER}Traceback (most recent call last):\n{WORKER}torch.OutOfMemoryError: CUDA out of memory.\n")
    step = next_step(state, "a")
    assert "--gpu-memory-utilization" in step
    assert "--mem-fraction-static" not in step


def test_an_old_client_that_waits_is_no_activity() -> None:
    made = LogFold(RULES)
    made.feed(LogReading("l", text="INFO 11-29 12:00:00 model_runner.py:1] Starting to load model m...\n"), 10.0)
    for t in (70.0, 80.0):
        line = "DEBUG 11-29 12:01:00 client.py:191] Waiting for output from MQLLMEngine.\n"
        made.feed(LogReading("l", text=line), t)
    assert made.state().last_activity_t == 10.0


def test_a_request_that_one_of_several_api_servers_answers_does_not_make_all_ready() -> None:
    lines = ["(APIServer pid=1) INFO 11-29 12:00:00 [u.py:1] Started 2 API server processes\n"]
    lines += ["(ApiServer_0 pid=5) INFO:     Application startup complete.\n", POST, POST]
    assert fold("".join(lines)).outcome == "unfinished"
    assert fold("".join([*lines, lines[1].replace("_0", "_1")])).outcome == "ready"
