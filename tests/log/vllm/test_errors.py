"""First causes: a failure is told by the rank, by the engine and by the API server; the rank's own words count."""

from __future__ import annotations

import pytest

from tests.log.vllm.loading import fold, recording

API = "(APIServer pid=1) "
ENGINE = "(EngineCore_DP0 pid=5) "
ENGINE_LOG = "(EngineCore_DP0 pid=5) ERROR 11-29 12:00:01 [core.py:708] "
WORKER = {n: f"(Worker_TP{n} pid={7 + n}) ERROR 11-29 12:00:00 [multiproc_executor.py:597] " for n in (0, 1)}
START = (
    "(APIServer pid=1) INFO 11-29 11:59:00 [u.py:1] non-default args: {'model': 'm', 'tensor_parallel_size': 2}\n"
    "(Worker_TP0 pid=7) INFO 11-29 11:59:58 [gpu_model_runner.py:2602] Starting to load model m...\n"
)
BACKGROUND = (
    "Exception: WorkerProc initialization failed due to an exception in a background process. "
    "See stack trace for root cause."
)


def block(head: str, first: str, last: str) -> str:
    lines = [
        first,
        "Traceback (most recent call last):",
        '  File "/x/vllm/v1/executor/multiproc_executor.py", line 571, in worker_main',
        "    worker = WorkerProc(*args, **kwargs)",
        "             ^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        *last.split("\n"),
    ]
    return "".join(f"{head}{line}\n" for line in lines if line)


CONSEQUENCES = (
    block(ENGINE_LOG, "EngineCore failed to start.", BACKGROUND)
    + f"{ENGINE}Process EngineCore_DP0:\n"
    + block(ENGINE, "", BACKGROUND)
    + f'{API}Traceback (most recent call last):\n{API}  File "/x/bin/vllm", line 8, in <module>\n'
    + f"{API}RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}\n"
)


def failed(last: str) -> str:
    return START + block(WORKER[1], "WorkerProc failed to start.", last) + CONSEQUENCES


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        ("FileNotFoundError: Weight files referenced in index but missing: {'m/model-00003.st'}", "weights_missing"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "oom_cuda"),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.", "oom_cuda"),
        ("RuntimeError: XPU out of memory. Tried to allocate 20.00 MiB", "oom_cuda"),
        ("RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests.", "oom_cuda"),
        (
            "ValueError: Free memory on device cuda:0 (10.00/79.00 GiB) on startup is less than desired GPU memory "
            "utilization (0.9, 71.1 GiB). Decrease GPU memory utilization",
            "memory_held",
        ),
        ("RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)", "nccl_error"),
        ("RuntimeError: HCCL function error: HcclCommInitRootInfo(...), error code is 7", "npu_error"),
        ("torch.AcceleratorError: CUDA error: invalid device ordinal", "invalid_device"),
        (
            "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89.",
            "quantization_unsupported",
        ),
        ("RuntimeError: Cannot re-initialize CUDA in forked subprocess.", "fork_after_cuda"),
        ("KeyError: 'layers.0.mlp.gate'", "key_error"),
    ],
)
def test_the_ranks_own_error_is_the_cause(last: str, kind: str) -> None:
    state = fold(failed(last))
    assert state.outcome == "crashed"
    assert state.error is not None
    assert (state.error.kind, state.error.line, state.error.rank) == (kind, 8, "TP1")
    assert state.failed_ranks == ("TP1",)


def test_two_ranks_that_fail_at_once_are_told_apart() -> None:
    victim = "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:1234"
    blocks = [
        block(WORKER[0], "WorkerProc failed to start.", victim).splitlines(keepends=True),
        block(WORKER[1], "WorkerProc failed to start.", "FileNotFoundError: m/x is gone").splitlines(keepends=True),
    ]
    mixed = "".join(first + second for first, second in zip(*blocks, strict=True))
    state = fold(START + mixed + CONSEQUENCES)
    assert state.error is not None
    assert (state.error.kind, state.error.rank) == ("file_not_found_error", "TP1")
    assert state.failed_ranks == ("TP0", "TP1")


def test_only_consequences() -> None:
    state = fold(START + CONSEQUENCES)
    assert state.error is not None
    assert (state.outcome, state.error.kind, state.error.line) == ("crashed", "worker_failed", 8)


def test_a_worker_that_ended_without_a_word_is_seen_before_the_engine_gives_up() -> None:
    text = recording("cpu-tp2-kill9-load")
    early = fold("\n".join(text.split("\n")[:56]) + "\n")
    assert early.error is not None
    assert (early.outcome, early.phase, early.error.kind) == ("crashed", "weights", "worker_lost")


def test_an_error_in_the_capture() -> None:
    text = START + block(
        WORKER[0], "WorkerProc hit an exception.", "torch.OutOfMemoryError: CUDA out of memory. Tried"
    )
    text += block(
        ENGINE_LOG, "EngineCore failed to start.", "RuntimeError: Worker failed with error 'CUDA out of memory'"
    )
    state = fold(text)
    assert state.error is not None
    assert (state.error.kind, state.error.line, state.error.rank) == ("oom_cuda", 8, "TP0")


@pytest.mark.parametrize(
    "last",
    [
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing.",
        "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in "
        "KV cache (4352). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`.",
        "ValueError: To serve at least one request with the model's max seq len (131072), (16.0 GiB KV cache is needed, "
        "which is larger than the available KV cache memory (8.0 GiB). Try increasing `gpu_memory_utilization`.",
    ],
)
def test_a_small_kv_cache_and_what_the_log_says_to_do(last: str) -> None:
    state = fold(START + block(ENGINE_LOG, "EngineCore failed to start.", last))
    assert state.error is not None
    assert (state.phase, state.error.kind, state.error.rank) == ("kv_cache", "not_enough_memory", "")
    assert state.error.advice.startswith("Try increasing `gpu_memory_utilization`")


MAIN = f'{API}Traceback (most recent call last):\n{API}  File "/x/bin/vllm", line 8, in <module>\n'


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "usage: vllm serve [model_tag] [options]\nvllm serve: error: unrecognized arguments: --tpsize 2\n",
            "bad_arguments",
        ),
        (
            MAIN + f"{API}pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
            f"{API}  Value error, Model architectures ['FooForCausalLM'] are not supported for now.\n",
            "model_unsupported",
        ),
        (
            MAIN + f"{API}pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
            f"{API}  Value error, something else [type=value_error]\n",
            "bad_arguments",
        ),
        (MAIN + f"{API}OSError: [Errno 98] Address already in use\n", "port_in_use"),
        (
            MAIN + f"{API}OSError: m/none is not a local folder and is not a valid model identifier\n",
            "model_not_found",
        ),
        (MAIN + f"{API}ValueError: Cannot provide a placement group of placement_group_specs=[]\n", "ray_resources"),
        (
            "(VllmWorkerProcess pid=12) INFO 11-29 12:00:00 model_runner.py:1] Starting to load model m...\n"
            "ERROR 11-29 12:00:00 multiproc_worker_utils.py:120] Worker VllmWorkerProcess pid 12 died, exit code: -9\n",
            "killed_sigkill",
        ),
    ],
)
def test_kinds_of_the_launcher(text: str, kind: str) -> None:
    state = fold(text)
    assert (state.family, state.outcome) == ("vllm", "crashed")
    assert state.error is not None
    assert state.error.kind == kind


@pytest.mark.parametrize(
    "line",
    [
        "WARNING 11-29 12:00:00 [parallel.py:750] Address already in use. Retrying with a new port.",
        "INFO 11-29 12:00:00 [network_utils.py:248] Port 29500 is already in use, trying port 29501",
        "(Worker_TP0 pid=7) WARNING 11-29 12:00:00 [utils.py:597] Failed to create oneDNN linear, fallback to torch linear."
        " Exception: could not create a primitive descriptor for the matmul primitive.",
        "(APIServer pid=1) WARNING 11-29 12:00:00 [system_utils.py:255] Found ulimit of 20000 and failed to automatically"
        " increase with error current limit exceeds maximum limit. This can cause fd limit errors like `OSError: [Errno 24]"
        " Too many open files`. Consider increasing with ulimit -n",
        "(Worker_TP0 pid=7) WARNING 11-29 12:00:00 [custom_all_reduce.py:144] Custom allreduce is disabled because your"
        " platform lacks GPU P2P capability or P2P test failed.",
    ],
)
def test_advice_and_harmless_lines_are_no_errors(line: str) -> None:
    state = fold(START + line + "\n")
    assert (state.outcome, state.error, state.errors) == ("unfinished", None, 0)


def test_a_stop_that_was_asked_for_is_no_crash() -> None:
    text = recording("cpu-tp1-tiny")
    assert "AsyncLLM output_handler failed" in text
    state = fold(text)
    assert (state.outcome, state.error) == ("ready", None)


UP = START + "(APIServer pid=1) INFO:     Application startup complete.\n"
LOST = "(Worker pid=156) INFO 11-30 14:35:46 [multiproc_executor.py:843] Parent process exited, terminating worker queues\n"
ASKED = (
    "(MainProcess pid=4) INFO 11-30 14:35:46 [utils.py:628] [shutdown] Process manager: send sigterm to process EngineCore_DP0\n"
    "(EngineCore_DP0 pid=98) INFO 11-30 14:35:46 [core.py:1454] [shutdown] EngineCore: trigger received signal=SIGTERM\n"
)


def test_the_sigterm_that_other_engines_get_when_one_has_died_is_no_shutdown():
    """--data-parallel-size 2: the launcher ends the engine that is left. After a real SIGTERM the order is the other."""
    state = fold(UP + LOST + ASKED)
    assert state.outcome == "crashed" and state.error.kind == "engine_died"
    assert state.error.line < state.sigterm_line
    state = fold(UP + ASKED + LOST)
    assert (state.error, state.outcome) == (None, "ready") and state.sigterm_line is not None


def test_an_api_server_that_died_is_no_engine():
    said = "Process ApiServer_1 (PID: 88) died with exit code None"
    log = f"(MainProcess pid=3) ERROR 11-30 14:34:12 [utils.py:599] Exception occurred while running API servers: {said}\n"
    assert fold(UP + log).error.kind == "api_server_died"
    assert fold(UP + log.replace("ApiServer_1", "EngineCore_DP1")).error.kind == "engine_died"
