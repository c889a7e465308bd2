"""Kinds of first causes, and texts that are no server's log: what is read, and what to do next."""

from __future__ import annotations

import pytest

from sgmon.analyse.log.summary import headline, next_step
from tests.log.loading import fold, how_it_failed

LOAD = "[2026-01-29 13:12:45 TP0] Load weight begin. avail mem=21.63 GB\n"
GRAPH = "[2026-01-29 13:12:45 TP0] Capture cuda graph begin.\n"
HIT = "[2026-01-29 13:12:50 TP0] Scheduler hit an exception: "
TRACE = HIT + "Traceback (most recent call last):\n"
SIGQUIT = "[2026-01-29 13:12:58] Received sigquit from a child process. It usually means the child failed.\n"
CHAIN = (
    "\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n"
)

#: name: text, phase, kind, line, rank
CAUSES = {
    "a budget below zero": (
        "[2026-01-29 13:12:46 TP0] max_total_tokens=8192 is larger than the profiled value -561981. Use the profiled"
        f" value instead.\n{TRACE}RuntimeError: Trying to create tensor with negative dimension -561981\n",
        *("kv_cache", "not_enough_memory", 1, "TP0"),
    ),
    "the first of a chain": (
        f"{LOAD}{TRACE}  File \"/x/a.py\", line 1, in load_model\nFileNotFoundError: [Errno 2] No such file: 'a'\n"
        f"{CHAIN}RuntimeError: could not load\n{SIGQUIT}",
        *("weights", "file_not_found_error", 4, "TP0"),
    ),
    "an exception in the header": (
        f"{LOAD}{HIT}my.pkg.errors.NotPossible: no\n{CHAIN}RuntimeError: x\n{SIGQUIT}",
        *("weights", "not_possible", 2, "TP0"),
    ),
    "the warm-up's own": (
        "[2026-01-29 13:12:45] Initialization failed. warmup error: Traceback (most recent call last):\n"
        '  File "/sgl/http_server.py", line 1434, in _execute_server_warmup\n'
        "requests.exceptions.ReadTimeout: Read timed out. (read timeout=600)\n",
        *("warmup", "warmup_failed", 3, ""),
    ),
    "an Ascend device": (
        f"{GRAPH}{TRACE}RuntimeError: ACL stream synchronize failed, error code:507035\nEZ9999: Inner Error!\n",
        *("graphs", "npu_error", 3, "TP0"),
    ),
    "a ROCm queue": (
        f"{GRAPH}:0:rocdevice.cpp :3006: Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_EXCEPTION: x\n"
        "Fatal Python error: Aborted\n",
        *("graphs", "gpu_fault", 2, ""),
    ),
    "a shell in Chinese with its line": (
        f"{LOAD}./run.sh: 第 3 行：  4242 已杀死               python -m sglang.launch_server\n",
        *("weights", "killed_sigkill", 2, ""),
    ),
    "a shell in German": (f"{LOAD}run.sh: Zeile 3:  4242 Getötet    python x\n", "weights", "killed_sigkill", 2, ""),
    "torch's own print of an exception": (
        '[rank1]: Traceback (most recent call last):\n[rank0]: Traceback (most recent call last):\n'
        '[rank1]:   File "/sgl/model_runner.py", line 1, in init_torch_distributed\n'
        "[rank1]: ValueError: bad world size\n",
        *("dist_init", "value_error", 4, "rank1"),
    ),
    "nvcc": (
        f"{GRAPH}{TRACE}subprocess.CalledProcessError: Command '['/usr/local/cuda/bin/nvcc', '-c']' returned 1.\n",
        *("graphs", "jit_build_failed", 3, "TP0"),
    ),
    "what the launcher killed itself": (
        f"{LOAD}{TRACE}ValueError: no\n[2026-01-29 13:12:51] kill_process_tree called: parent_pid=1,"
        " include_parent=True, pid=1\nKilled\n",
        *("weights", "value_error", 3, "TP0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CAUSES)
def test_first_cause(name: str) -> None:
    text, phase, kind, line, rank = CAUSES[name]
    assert how_it_failed(fold(text)) == ("crashed", phase, kind, line, rank)


def test_the_advice_of_the_log_is_the_next_step() -> None:
    text = (
        f"{GRAPH}{TRACE}Exception: Capture cuda graph failed: CUDA out of memory.\nPossible solutions:\n"
        "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
    )
    assert "set --mem-fraction-static to a smaller value" in next_step(fold(text), "x.log")


def test_the_headline_names_the_ranks_that_are_behind() -> None:
    begin = "".join(f"[2026-01-29 13:12:45 TP{n}] Load weight begin. avail mem=1.0 GB\n" for n in range(8))
    end = "".join(f"[2026-01-29 13:12:5{n} TP{n}] Load weight end. type=X, avail mem=1.0 GB\n" for n in range(1, 7))
    state = fold(begin + end)
    assert (state.phase, state.behind) == ("weights", ("TP0", "TP7"))
    assert "TP0 and TP7 are still in the weight load, 6 ranks are past it" in headline(state)


def test_the_headline_of_ranks_in_one_phase_says_that_nobody_is_past_it() -> None:
    ended = "".join(f"[2026-01-29 13:12:4{n} TP{n}] Init torch distributed ends. mem usage=1.0 GB\n" for n in (0, 1))
    state = fold(ended + "[2026-01-29 13:12:45 TP0] Load weight begin. avail mem=1.0 GB\n")
    assert (state.phase, state.reached, state.behind) == ("weights", "weights", ("TP1",))
    assert "in the weight load: TP1 is behind 1 other rank in the weight load;" in headline(state)


def test_a_replica_that_comes_later_does_not_take_the_first_one_back() -> None:
    """Two replicas of a real server on two cores: the last line is that of the one behind."""
    said = (
        "DP0] Init parallel begin.",
        "DP0] Load weight begin. avail mem=1.0 GB",
        "DP0] Load weight end. type=X, avail mem=1.0 GB",
        "DP0] Memory pool end. avail mem=1.0 GB",
        "DP1] Init parallel begin.",
        "DP1] Load weight begin. avail mem=1.0 GB",
    )
    state = fold("".join(f"[2026-11-30 03:08:4{n} {line}\n" for n, line in enumerate(said)))
    assert (state.phase, state.behind) == ("weights", ("DP1",))
    assert state.reached == "graphs"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "2025-10-11 05:54:14  INFO sglang_router_rs::server: src/server.rs:863: Starting router on 0.0.0.0:30000\n",
            "a router's log",
        ),
        (
            "2025-03-01 12:00:00,123 - __main__ - INFO - Attempt 12: Please wait for sglang server to become ready...\n",
            "a program that starts a server",
        ),
        (
            'Process 4242: sglang::scheduler_TP0\n\nThread 4242 (active): "MainThread"\n'
            "    load_model (sglang/srt/model_executor/model_runner.py:820)\n",
            "stacks that py-spy printed: the main thread is in load_model (weight load)",
        ),
        ("total 4\n-rw-r--r-- 1 root root 5 Jan 1 a\n", "no line says which server wrote this"),
    ],
)  # fmt: skip
def test_no_server_s_log(text: str, words: str) -> None:
    state = fold(text)
    assert words in headline(state)
    assert state.outcome == "unfinished"


def test_a_router_that_gave_up_does_not_wait() -> None:
    state = fold("sgl_model_gateway: Timeout 600s waiting for workers to become healthy\n")
    assert (state.what, state.doing) == ("a router's log", "it gave up waiting for workers")


def test_the_bar_of_flashinfer_s_tuner_whose_name_is_in_brackets() -> None:
    bar = fold("[AutoTuner]: Tuning trtllm_gemm:  50%|##   | 11/22 [06:15<06:15, 34.1s/it]\n").bars[0]
    assert (bar.name, bar.done, bar.total) == ("jit_flashinfer", 11, 22)
    assert bar.text.startswith("AutoTuner Tuning trtllm_gemm 50%")


def test_an_argument_that_was_not_read_is_not_shown_as_one() -> None:
    from sgmon.analyse.log.summary import as_json

    state = fold("[2026-01-29 13:12:36] server_args=ServerArgs(model_path='m', tp_size=8, dp_si")
    assert as_json(state, "x")["topology"] == {"tp": 8, "dp": None, "pp": None, "ep": None, "nnodes": None}


def test_the_headline_of_a_crash_is_in_words() -> None:
    said = headline(fold(f"{LOAD}{TRACE}KeyError: 'model.layers.55.mlp.input_scale'\n{SIGQUIT}"))
    assert said.startswith("CRASHED in the weight load: key error on TP0, line 3")
