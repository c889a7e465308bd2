"""Text that begins in the middle of a story or ends in the middle of a traceback: what its frames prove all the same."""

from __future__ import annotations

import pytest

from sgmon.analyse.diagnosis.ready import ready_words
from sgmon.analyse.log.summary import headline, next_step
from tests.log.loading import fold

SRT = "/opt/x/sglang/srt"
LOOP = (
    "Traceback (most recent call last):\n"
    f'  File "{SRT}/managers/scheduler.py", line 30, in run_scheduler_process\n'
    "    scheduler.event_loop_normal()\n"
    f'  File "{SRT}/managers/scheduler.py", line 20, in event_loop_normal\n'
    "    result = self.run_batch(batch)\n"
)
LAUNCH = (
    "Traceback (most recent call last):\n"
    '  File "/opt/x/sglang/launch_server.py", line 7, in <module>\n'
    "    run_server(server_args)\n"
    '  File "/opt/x/sglang/launch_server.py", line 5, in run_server\n'
)


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        (LOOP, "serving"),
        (LAUNCH, "launch"),
        (LOOP.partition("\n")[2], "serving"),
        (LOOP.replace("\n    ", "\n").replace("\n  ", "\n"), "serving"),
        (LOOP.partition("\n")[2].lstrip(), "serving"),
    ],
    ids=["a rank", "the launcher", "without its first line", "indentation lost", "both"],
)
def test_a_frame_that_only_the_end_of_a_process_has(text: str, phase: str) -> None:
    state = fold(text)
    assert (state.family, state.outcome, state.phase) == ("sglang", "crashed", phase)
    assert state.error is not None and state.error.kind == "exception"


def test_a_traceback_that_may_be_caught_is_no_crash_before_its_end() -> None:
    cut = (
        f'Traceback (most recent call last):\n  File "{SRT}/utils/common.py", line 30, in load_image\n    image = x\n'
    )
    assert fold(cut).outcome == "unfinished"


LEAK = "ValueError: token_to_kv_pool_allocator memory leak detected! available_size=1, protected_size=0\n"


def test_a_text_that_begins_with_the_exception() -> None:
    state = fold(
        LEAK + "\n[2026-02-01 10:00:00] Received sigquit from a child process. It usually means the child failed.\n"
    )
    assert (state.outcome, state.phase) == ("crashed", "serving")
    assert state.error is not None and (state.error.kind, state.error.line) == ("value_error", 1)


def test_a_text_that_begins_with_an_exception_that_was_caught() -> None:
    batch = "[2026-02-01 10:00:00 TP0] Prefill batch, #new-seq: 1, #new-token: 90, token usage: 0.00, #running-req: 3, #queue-req: 0\n"
    assert fold("ValueError: no\n" + batch).outcome == "ready"


def test_the_end_of_a_traceback_is_not_of_the_rank_whose_own_begins_below() -> None:
    state = fold(
        f"    raise ValueError(message)\n{LEAK}\n[2026-02-01 10:00:00 TP3] Scheduler hit an exception: {LOOP}"
    )
    assert (state.outcome, state.phase) == ("crashed", "serving")
    assert state.error is not None and (state.error.kind, state.error.line, state.error.rank) == (
        "value_error",
        2,
        "",
    )


def test_an_exception_that_the_launcher_says_was_none_that_a_bar_of_others_outlives() -> None:
    raised = (
        f'(RolloutActor pid=7)   File "{SRT}/managers/schedule_batch.py", line 2, in get_model_worker_batch\n'
        "(RolloutActor pid=7)     seq_lens_cpu = self.seq_lens.cpu()\n"
        "(RolloutActor pid=7) RuntimeError: CUDA error: an illegal memory access was encountered\n"
    )
    quit_ = "(RolloutActor pid=7) [2026-02-01 10:00:00] Received sigquit from a child process. It usually means\n"
    bar = "Capturing batches (bs=1 avail_mem=28.99 GB): 100%|██████████| 23/23 [00:08<00:00,  2.81it/s]\n"
    state = fold(raised + quit_ + bar)
    assert (state.outcome, state.phase, state.error and state.error.kind) == ("crashed", "serving", "cuda_error")


def test_an_exception_that_a_handler_of_requests_answered() -> None:
    said = (
        "[2026-02-01 10:00:00] Error in request: no\n--\nTraceback (most recent call last):\n"
        f'  File "{SRT}/entrypoints/openai/serving_base.py", line 4, in handle_request\n'
        "    return await self._answer(request)\nValueError: no\n"
    )
    assert (fold(said).outcome, fold(said).error) == ("unfinished", None)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ('INFO:     10.0.0.1:53594 - "POST /v1/chat/completions HTTP/1.1" 200 OK', "ready"),
        ('INFO:     10.0.0.1:53594 - "POST /v1/chat/completions HTTP/1.1" 503 Service Unavailable', "unfinished"),
        ('INFO:     127.0.0.1:53594 - "POST /v1/chat/completions HTTP/1.1" 200 OK', "unfinished"),
        ("Prefill batch, #new-seq: 1, #new-token: 90, token usage: 0.00, #running-req: 12, #queue-req: 0", "ready"),
        (
            "Prefill batch, #new-seq: 1, #new-token: 90, token usage: 0.00, #running-req: 1, #queue-req: 0",
            "unfinished",
        ),
    ],
)
def test_a_text_from_the_middle_of_serving(said: str, outcome: str) -> None:
    assert fold(f"[2026-02-01 10:00:00] {said}\n").outcome == outcome
    started = "[2026-02-01 09:59:00 TP0] Load weight begin. avail mem=78.00 GB\n"
    assert fold(f"{started}[2026-02-01 10:00:00] {said}\n").outcome == "unfinished"  # the ready line will come


def test_stacks_below_the_watchdog_s_line_do_not_hide_it() -> None:
    state = fold(
        "    run (threading.py:1010)\n\n"
        "[2026-02-01 10:00:00 PP1 TP1] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n\n"
        '[2026-02-01 10:00:00 PP2 TP1] Pyspy dump for PID 9:\nThread 9 (idle): "MainThread"\n'
        "    gloo::transport::tcp::UnboundBuffer::waitRecv (libtorch_cpu.so)\n    run_batch (scheduler.py:10)\n"
    )
    assert (state.what, state.error and (state.error.kind, state.error.rank)) == ("", ("watchdog_timeout", "PP1 TP1"))


def test_the_second_capture_is_a_capture() -> None:
    state = fold(
        "[2026-02-01 10:00:00] Capture cuda graph end. Time elapsed: 5.37 s. mem usage=1.44 GB. avail mem=38.05 GB.\n"
        "[2026-02-01 10:00:00] Capture cuda graph num tokens [4, 8, 12]\n"
    )
    assert (state.outcome, state.phase) == ("unfinished", "graphs")


def test_no_rank_is_behind_one_that_alone_says_what_it_captures() -> None:
    end = "Capture cuda graph end. Time elapsed: 5.37 s. mem usage=1.44 GB. avail mem=38.05 GB."
    state = fold(
        f"[2026-02-01 10:00:00 TP1] {end}\n[2026-02-01 10:00:00 TP0] {end}\n"
        "[2026-02-01 10:00:00 TP0] Capture cuda graph num tokens [4, 8, 12]\n"
    )
    assert (state.phase, state.behind) == ("graphs", ())


@pytest.mark.parametrize("cut", ["last):\n", "", " last"])
def test_a_header_that_is_cut_itself(cut: str) -> None:
    state = fold(f"[2026-02-01 10:00:00 TP13 EP13] Scheduler hit an exception: Traceback (most recent call{cut}")
    assert (state.outcome, state.error and state.error.rank) == ("crashed", "TP13")


def test_the_exit_code_that_a_harness_tells_after_the_server_ended_itself() -> None:
    state = fold(
        "[2026-02-01 10:00:00] Received sigquit from a child process. It usually means the child failed.\n"
        'Traceback (most recent call last):\n  File "/x/bench.py", line 3, in main\n    raise Exception(\n'
        "Exception: Server process exited with code -9. Check server logs for errors.\n"
    )
    assert (state.what, state.outcome, state.error and state.error.kind) == ("", "crashed", "child_failed")


def test_the_line_of_the_ready_scheduler_may_be_cut() -> None:
    state = fold("[2026-02-01 10:00:00] max_total_num_tokens=30192, chunked_prefill_size=81")
    assert state.phase == "http"


def test_a_piecewise_graph_that_fails_in_a_batch() -> None:
    failed = "[2026-02-01 10:00:00 TP6] Piecewise CUDA Graph failed with error: no\n"
    state = fold(failed + f"[2026-02-01 10:00:00 TP6] Scheduler hit an exception: {LOOP}")
    assert (state.phase, state.error and (state.error.kind, state.error.rank)) == (
        "serving",
        ("graph_capture_failed", "TP6"),
    )
    other = fold(failed + f"[2026-02-01 10:00:00 TP5] Scheduler hit an exception: {LOOP}")
    assert other.phase == "graphs"


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("srt/managers/schedule_policy.py 878 add_one_req", "serving"),
        ("srt/model_executor/model_runner.py 463 init_weights_update_group", "serving"),
        ("srt/managers/tp_worker_overlap_thread.py 114 forward_thread_func", "serving"),
    ],
)
def test_frames_of_serving(name: str, phase: str) -> None:
    file, line, function = name.split()
    frame = f'  File "/opt/x/sglang/{file}", line {line}, in {function}\n    x = y\nAssertionError\n'
    state = fold(f"[2026-02-01 10:00:00 TP1] Scheduler hit an exception: Traceback (most recent call last):\n{frame}")
    assert (state.outcome, state.phase) == ("crashed", phase)


@pytest.mark.parametrize(
    "said",
    [
        "Exception (either an error or timeout) detected by watchdog at work: 32, last enqueued NCCL work: 32",
        "Timeout at NCCL work: 32, last enqueued NCCL work: 32, last completed NCCL work: 31.",
        "Received a dump signal due to a collective timeout from this local rank and we will try our best to dump it",
    ],
)
def test_torch_s_words_for_a_collective_that_timed_out(said: str) -> None:
    state = fold(f"[rank3]:[E227 16:30:43.526290891 ProcessGroupNCCL.cpp:1785] [PG ID 2 PG GUID 3 Rank 3] {said}\n")
    assert (state.outcome, state.error and (state.error.kind, state.error.rank)) == (
        "crashed",
        ("collective_timeout", "rank3"),
    )


def test_requests_without_the_prefix_of_a_family_are_of_no_family() -> None:
    state = fold('INFO:     10.0.0.1:58178 - "POST /v1/completions HTTP/1.1" 200 OK\n')
    assert (state.family, state.outcome) == ("", "unfinished")


def test_ucx_s_own_words_for_a_segmentation_fault() -> None:
    state = fold(
        '[2026-02-01 10:00:00] 127.0.0.1 [01/Feb/2026:10:00:00 +0000] "GET /route?engine_rank=0 HTTP/1.1" 200 262\n'
        "[host-a:12796:1:13303] Caught signal 11 (Segmentation fault: invalid permissions for mapped object at 0x7f)\n"
    )
    assert (state.outcome, state.error and state.error.kind) == ("crashed", "segfault")


def test_a_nul_as_a_pager_shows_it_hides_no_rank() -> None:
    state = fold("^@[17:43:23 TP6] Load weight end. type=A, dtype=torch.bfloat16, avail mem=20.62 GB\n")
    assert [(rank.rank, rank.milestone) for rank in state.ranks] == [("TP6", "load_end")]


def test_a_package_that_fails_to_import_before_any_other_file() -> None:
    state = fold(
        'Traceback (most recent call last):\n  File "<frozen runpy>", line 189, in _run_module_as_main\n'
        '  File "/opt/x/site-packages/sglang/__init__.py", line 5, in <module>\n    from sglang.lang.api import (\n'
        "ModuleNotFoundError: No module named 'pybase64'\n"
    )
    assert (state.family, state.phase) == ("sglang", "launch")
    assert "CRASHED while launching" in headline(state) and "install it" in next_step(state, "x")


def test_a_text_that_begins_while_serving_has_no_ready_line_and_does_not_say_so() -> None:
    decode = (
        "[2026-01-29 13:20:25 TP0] Decode batch. #running-req: 1, token usage: 0.00, gen throughput (token/s): 9\n"
    )
    begun = fold(decode)
    assert (begun.outcome, begun.ready_by_work) == ("ready", True)
    assert ready_words(begun) == "line 1 tells of work on requests; the ready line was not read"
    whole = fold("[2026-01-29 13:20:24] The server is fired up and ready to roll!\n" + decode)
    assert (whole.outcome, whole.ready_by_work) == ("ready", False)
    assert ready_words(whole) == "the ready line is line 1"
