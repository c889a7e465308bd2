"""Logs that say little themselves: a start that fails before its first record, a server that something else ended,
and text that is no word of the server: requests, exceptions that it lived through."""

from __future__ import annotations

import json

import pytest

from sgmon.analyse.log.summary import headline, next_step
from tests.log.loading import fold

#: a traceback of the launcher alone: nothing of it is a record of the server
ALONE = (
    "Traceback (most recent call last):",
    '  File "<frozen runpy>", line 198, in _run_module_as_main',
    '  File "/opt/x/sglang/launch_server.py", line 7, in <module>',
    "    from sglang.srt.server_args import prepare_server_args",
    "ImportError: cannot import name 'a' from 'b'",
)
PREFIXES = {
    "nothing": "",
    "compose": "llm-1  | ",
    "docker -t": "2026-02-01T10:00:09.100000001Z ",
    "a pod": "[pod/llm-0/server] ",
    "a node's file": "2026-02-01T10:00:09.100000001Z stderr F ",
    "a journal": "Feb 01 10:00:09 host-a python3[4242]: ",
    "a logger": "2026-02-01 10:00:09 | ERROR | stderr | ",
    "a tab": "2026-02-01T10:00:09Z\t",
    "a task": "1: ",
    "a host": "host-a: ",
}
LOAD = (
    "[2026-02-01 10:00:20] server_args=ServerArgs(model_path='/m', tp_size=2, port=30000)\n"
    "[2026-02-01 10:00:42 TP0] Load weight begin. avail mem=78.00 GB\n"
    "[2026-02-01 10:00:42 TP1] Load weight begin. avail mem=78.00 GB\n"
)
READY = "[2026-02-01 10:01:42] The server is fired up and ready to roll!\n"


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_a_start_that_fails_before_its_first_record(prefix: str) -> None:
    state = fold("".join(f"{prefix}{line}\n" for line in ALONE))
    assert (state.family, state.outcome, state.phase) == ("sglang", "crashed", "launch")
    assert state.error is not None
    assert (state.error.kind, state.error.line, state.error.text) == ("import_error", 5, ALONE[4])


def test_what_strikes_while_it_serves_has_struck_in_the_warm_up_where_it_was_not_ready() -> None:
    up = "[2026-02-01 10:01:00] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)\n"
    struck = "[2026-02-01 10:06:42 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n"
    state = fold(LOAD + up + struck)
    assert (state.error and state.error.kind, state.phase) == ("watchdog_timeout", "warmup")
    assert fold(LOAD + up + READY + struck).phase == "serving"


def test_the_same_in_json() -> None:
    state = fold("".join(json.dumps({"log": f"{line}\n", "stream": "stderr"}) + "\n" for line in ALONE))
    assert (state.family, state.outcome, state.error and state.error.kind) == ("sglang", "crashed", "import_error")


def test_torch_s_rank_before_each_line_is_no_envelope() -> None:
    state = fold("".join(f"[rank1]: {line}\n" for line in ALONE))
    assert state.error is not None and state.error.rank == "rank1"


def test_wrong_arguments_in_a_journal() -> None:
    line = "Feb 01 10:00:09 host-a python3[4242]: launch_server.py: error: unrecognized arguments: --foo\n"
    state = fold(line)
    assert (state.family, state.phase, state.error and state.error.kind) == ("sglang", "launch", "bad_arguments")


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("llm-1 exited with code 137", "server_killed"),
        ("llm-1 exited with code 1", "ended_by_supervisor"),
        ("2026-02-01 10:01:19,100 WARN exited: llm (terminated by SIGKILL; not expected)", "server_killed"),
        ("2026-02-01 10:01:19,100 WARN exited: llm (exit status 1; not expected)", "ended_by_supervisor"),
        ("llm.service: Main process exited, code=killed, status=9/KILL", "server_killed"),
        ("llm.service: A process of this unit has been killed by the OOM killer.", "host_memory"),
        ("llm.service: Main process exited, code=exited, status=1/FAILURE", "ended_by_supervisor"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=42.0. Some of the step tasks", "host_memory"),
        ("srun: error: host-b: task 1: Out Of Memory", "host_memory"),
        ("srun: error: host-b: tasks 0-7: Killed", "server_killed"),
        ("srun: error: host-b: task 1: Exited with exit code 1", "ended_by_supervisor"),
        ("slurmstepd: error: *** JOB 42 ON host-a CANCELLED AT 2026-02-01T10:30 DUE TO TIME LIMIT ***", "job_time_limit"),
        ("Out of memory: Killed process 4242 (sglang::schedul) total-vm:1kB", "host_memory"),
    ],
)  # fmt: skip
def test_who_ended_the_server(said: str, kind: str) -> None:
    state = fold(LOAD + said + "\n")
    assert (state.outcome, state.phase, state.error and state.error.kind) == ("crashed", "weights", kind)


@pytest.mark.parametrize(
    "said", ["llm-1 exited with code 0", "llm-1 exited with code 143", "x: code=exited, status=0/SUCCESS"]
)
def test_an_end_that_was_asked_for_is_no_crash(said: str) -> None:
    assert fold(LOAD + said + "\n").outcome == "unfinished"


def test_the_server_s_own_cause_comes_before_who_ended_it() -> None:
    raised = (
        "[2026-02-01 10:01:00 TP1] Scheduler hit an exception: Traceback (most recent call last):\nValueError: no\n"
    )
    state = fold(LOAD + raised + "llm-1 exited with code 137\n")
    assert state.error is not None and (state.error.kind, state.error.rank) == ("value_error", "TP1")


def test_a_start_that_was_stopped_is_not_said_to_be_slow() -> None:
    state = fold(LOAD + "[2026-02-01 10:02:42] SIGTERM received. signum=15 frame=None. Draining requests\n")
    assert "stopped by SIGTERM, line 4" in headline(state) and "slow from hung" not in headline(state)
    assert "who stopped it" in next_step(state, "x")


REQUESTS = (
    "Receive: obj=GenerateReqInput(text='RuntimeError: CUDA out of memory, Traceback (most recent call last):')",
    "Finish: obj=GenerateReqInput(rid='a'), out={'text': 'Fatal Python error: Segmentation fault, exit code: -9'}",
    '{"timestamp": "2026-02-01T10:01:50", "event": "request.received", "obj": {"text": "Address already in use"}}',
    "Receive: obj=GenerateReqInput(text='why? [2026-02-01 10:00:00 TP3] Scheduler hit an exception: OSError: no')",
)


@pytest.mark.parametrize("said", REQUESTS)
def test_what_a_request_says_is_no_word_of_the_server(said: str) -> None:
    for prefix in ("", "llm-1  | "):
        lines = [*(LOAD + READY).splitlines(), f"[2026-02-01 10:01:50] {said}"]
        state = fold("".join(f"{prefix}{line}\n" for line in lines))
        assert (state.outcome, state.error) == ("ready", None)
        assert "TP3" not in {rank.rank for rank in state.ranks}


def test_an_exception_of_a_thread_that_the_server_lives_through() -> None:
    raised = 'Exception in thread Thread-5:\nTraceback (most recent call last):\n  File "/x/a.py", line 1, in run\nKeyError: 1\n'
    decode = "[2026-02-01 10:01:59 TP0] Decode batch, #running-req: 1, #token: 20, token usage: 0.00\n"
    quiet = "[2026-02-01 10:01:58] Something else is said here\n"
    assert fold(LOAD + READY + raised + quiet + decode).outcome == "ready"
    assert fold(LOAD + READY + raised).outcome == "crashed"


def test_a_logging_error_is_no_cause() -> None:
    state = fold(
        LOAD + "--- Logging error ---\nTraceback (most recent call last):\n"
        '  File "/usr/lib/logging/__init__.py", line 1, in emit\nRuntimeError: reentrant call\nCall stack:\n'
        "Message: 'Received sigquit from a child process. It usually means the child failed.'\n"
    )
    assert state.error is not None and state.error.kind == "child_failed"


def test_a_crash_in_the_log_of_a_program_that_starts_the_server_is_the_server_s() -> None:
    state = fold(
        "[2026-02-01 10:01:00 TP1] Scheduler hit an exception: Traceback (most recent call last):\nValueError: no\n"
        "\nException: Server process exited with code -9. Check server logs for errors.\n"
    )
    assert (state.what, state.outcome, state.error and state.error.kind) == ("", "crashed", "value_error")


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("CUDA error (csrc/metadata.cu:93): no kernel image is available for execution on the device", "crashed"),
        ("CUDA Error: no kernel image is available for execution on the device (209) /x/handler.cuh", "unfinished"),
    ],
)
def test_a_kernel_that_prints_its_error_without_a_traceback(said: str, outcome: str) -> None:
    state = fold(f"{LOAD}{said}\n")
    assert (state.outcome, state.error and state.error.kind) == (outcome, "no_kernel_image")


def test_the_exception_below_the_line_of_an_old_router_process() -> None:
    state = fold(
        "[gpu_id=0] Load weight begin. avail mem=1.0 GB\nrouter init state: Traceback (most recent call last):\nTypeError: no\n"
    )
    assert state.error is not None and (state.error.kind, state.error.line) == ("type_error", 3)


def test_a_traceback_that_is_cut_proves_the_call_in_its_last_line() -> None:
    trace = "[2026-02-01 10:01:00 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
    frame = '  File "/x/sglang/srt/model_executor/model_runner.py", line 287, in initialize\n'
    assert fold(f"{trace}{frame}    self.init_cuda_graphs()\n").phase == "graphs"
    assert fold(f"{trace}{frame}    self.load_model()\n").phase == "weights"
    assert fold(f"{trace}{frame}    self.sampler = Sampler()\n").phase == ""


def test_the_end_of_a_phase_whose_begin_stands_before_the_text_leaves_others_behind() -> None:
    begun = "[2026-02-01 10:00:40 DP1 TP1] Init torch distributed begin.\n"
    ended = "".join(
        f"[2026-02-01 10:00:4{n} DP{n} TP{n}] Init torch distributed ends. elapsed=1.0 s, mem usage=1.0 GB\n"
        for n in (0, 2, 3)
    )
    state = fold(begun + ended)
    assert (state.phase, state.behind) == ("dist_init", ("DP1 TP1",))


def test_a_time_without_a_blank_behind_it_is_an_envelope_too() -> None:
    begun = "[2026-02-01 10:00:24 TP1] Scheduler hit an exception: Traceback (most recent call last):"
    lines = [LOAD.splitlines()[2], begun, *ALONE[2:4], "AttributeError: no"]
    state = fold("".join(f"02-01 10:00:24.784{line}\n" for line in lines))
    assert state.error is not None
    assert (state.error.kind, state.error.rank, state.error.line) == ("attribute_error", "TP1", 5)


def test_a_text_that_begins_inside_of_a_traceback_tells_its_phase() -> None:
    frames = (
        '  File "/x/sglang/srt/managers/scheduler.py", line 418, in __init__\n    self.tp_worker = TpModelWorker(\n'
        '  File "/x/sglang/srt/model_executor/model_runner.py", line 700, in load_model\n'
    )
    state = fold(f"{frames}KeyError: 'a'\n")
    assert (state.outcome, state.phase, state.error and state.error.line) == ("crashed", "weights", 4)
    assert fold(frames).error is None  # nothing says yet how it ended


def test_a_watchdog_that_strikes_before_the_server_is_ready_strikes_in_the_warm_up() -> None:
    struck = "[2026-02-01 10:09:42 PP1 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n"
    up = "[2026-02-01 10:01:42] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)\n"
    assert fold(LOAD + up + struck).phase == "warmup"
    assert fold(LOAD + READY + struck).phase == fold(struck).phase == "serving"


def test_the_end_of_nvshmem_s_connections() -> None:
    begin = "".join(f"[2026-02-01 10:01:42 TP{n}] Capture cuda graph begin.\n" for n in (0, 1))
    state = fold(f"{LOAD}{begin}/x/init.cu:1007: non-zero status: 7 nvshmem setup connections failed \n")
    assert (state.outcome, state.phase, state.error and state.error.kind) == ("crashed", "graphs", "nvshmem_failed")


def test_a_proxy_that_answers_the_warm_up_is_thought_of() -> None:
    said = "[2026-02-01 10:01:42] Initialization failed. warmup error: Traceback (most recent call last):\n"
    assert "no_proxy" in next_step(fold(f"{LOAD}{said}AssertionError: res=<Response [403]>, res.text=''\n"), "x")


def test_the_warm_up_of_the_diffusion_server() -> None:
    begun = '[02-01 10:00:20] server_args: {"model_path": "/m", "num_gpus": 1}\n'
    said = "[02-01 10:00:56] Server warmup failed; aborting startup: no answer\nTraceback (most recent call last):\nRuntimeError: no\n"
    state = fold(begun + said)
    assert (state.family, state.outcome, state.phase) == ("sglang-diffusion", "crashed", "warmup")


def test_loggers_of_the_server_in_another_program_s_format() -> None:
    state = fold(
        "2026-02-01 10:00:09 | ERROR | sglang.srt.entrypoints.engine | Received sigquit from a child process.\n"
    )
    assert (state.family, state.outcome) == ("sglang", "crashed")


#: what a terminal, a syslog or an editor leaves around lines
MARKS = {
    "the mark of a coding": ("\ufeff", "", ""),
    "a cursor": ("", "\x1b[2K\x1b[1G", ""),
    "a title": ("", "\x1b]0;host\x07", ""),
    "colours as syslog spells them": ("", "#033[34m", "#033[0m"),
    "colours as cat -v spells them": ("", "^[[34m", "^[[0m"),
    "a blank line after each": ("", "", "\n"),
    "TAI64N": ("", "@400000006980b1c80a1b2c3d ", ""),
}


@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS)
def test_marks_around_lines_change_nothing(marks: tuple[str, str, str]) -> None:
    begin, before, after = marks
    raised = "[2026-02-01 10:01:00 TP1] Scheduler hit an exception: Traceback (most recent call last):"
    lines = [*LOAD.splitlines(), raised, *ALONE[2:4], "KeyError: 'a.b'"]
    state = fold(begin + "".join(f"{before}{line}{after}\n" for line in lines))
    assert state.error is not None and state.error.text == "KeyError: 'a.b'"
    assert (state.error.kind, state.error.rank, len(state.milestones)) == ("key_error", "TP1", 3)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("ImportError: libx.so.1: cannot open shared object file: No such file or directory", "import_error"),
        ("ImportError: /x/common_ops.so: undefined symbol: _ZN3c10", "extension_mismatch"),
        ("RuntimeError: Found no NVIDIA driver on your system.", "no_driver"),
        ("RuntimeError: CUDA error: system not yet initialized", "fabric_manager"),
        ("Exception: x_python with minimum required version 0.2.5 is not installed", "package_too_old"),
        ("AssertionError: 28 is not divisible by 8", "size_not_divisible"),
        ("ValueError: has no SGlang implementation and the Transformers implementation is not compatible with SGLang.", "model_unsupported"),
        ("RuntimeError: Internal Triton PTX codegen error\nptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'", "jit_build_failed"),
        ("RuntimeError: [enforce fail at gloo/device.cc:83] Unable to find address for: eth9", "wrong_interface"),
        ("RuntimeError: Mooncake Transfer Engine initialization failed.", "transfer_engine_failed"),
    ],
)  # fmt: skip
def test_a_plain_cause_has_its_name_and_a_next_step(said: str, kind: str) -> None:
    begun = "[2026-02-01 10:01:00 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
    state = fold(f"{LOAD}{begun}{ALONE[2]}\n{said}\n")
    assert state.error is not None and (state.error.kind, state.error.rank) == (kind, "TP1")
    assert not next_step(state, "x").startswith("read the log")
    assert state.phase in ("weights", "dist_init", "disagg")


def test_a_script_without_a_main_guard() -> None:
    said = (
        "RuntimeError: \n        An attempt has been made to start a new process before the\n        current process"
    )
    state = fold("\n".join((*ALONE[:4], said, "EOFError", "")))
    assert state.error is not None and state.error.kind == "no_main_guard"


def test_a_task_s_exception_that_nobody_asked_for_ends_nothing() -> None:
    said = (
        "[2026-02-01 10:02:08] Task exception was never retrieved\n"
        "future: <Task finished name='Task-9' coro=<x() done> exception=OSError()>\n"
        'Traceback (most recent call last):\n  File "/x/a.py", line 1, in x\nOSError: no\n'
    )
    assert fold(LOAD + READY + said).outcome == "ready"


def test_a_server_that_answers_again_after_a_failed_health_check_is_ready() -> None:
    failed = "[2026-02-01 10:02:03] Health check failed. Server couldn't get a response from detokenizer for last 20 seconds\n"
    lines = "".join(f"[2026-02-01 10:02:{n:02d}] Something else is said here\n" for n in range(10, 50))
    probe = (
        "[2026-02-01 10:02:51 TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00\n"
    )
    served = '[2026-02-01 10:02:52] INFO:     127.0.0.1:1234 - "POST /generate HTTP/1.1" 200 OK\n'
    assert fold(LOAD + READY + failed + lines + probe).outcome == "unhealthy"
    assert fold(LOAD + READY + failed + lines + served).outcome == "ready"


def test_an_exception_whose_name_does_not_say_that_it_is_one() -> None:
    begun = "[2026-02-01 10:01:00 DP0 TP5] Scheduler hit an exception: Traceback (most recent call last):\n"
    frame = (
        '  File "/x/sglang/srt/model_executor/piecewise_cuda_graph_runner.py", line 215, in __init__\n    self.go()\n'
    )
    state = fold(f"{begun}{frame}torch._dynamo.exc.Unsupported: Data-dependent branching\n")
    assert state.error is not None
    assert (state.error.kind, state.error.line, state.phase) == ("unsupported", 4, "graphs")
    assert fold("torch._dynamo.exc.Unsupported: said by a line alone\n").error is None
