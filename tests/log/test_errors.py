"""First causes: an error of another rank, a consequence or a caught traceback never hides them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.log.loading import fold

SIGQUIT = "[2026-01-29 13:13:50] Received sigquit from a child process. It usually means the child failed.\n"


def raised(rank: str, last: str) -> str:
    return (
        f"[2026-01-29 13:13:49 {rank}] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/x/scheduler.py", line 1, in run_scheduler_process\n'
        "    scheduler = Scheduler(\n"
        '    raise RuntimeError(f"NCCL error: {error_str}")\n'
        f"{last}\n\n"
    )


def cause(text: str) -> tuple[str, int, str] | None:
    error = fold(text).error
    return (error.kind, error.line, error.rank) if error else None


def test_a_victim_does_not_hide_the_cause() -> None:
    text = raised(
        "TP0", "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:1234"
    )
    text += raised("TP1", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.") + SIGQUIT
    assert cause(text) == ("oom_cuda", 11, "TP1")


def test_an_exception_whose_line_has_no_end_yet_is_read() -> None:
    text = raised("TP3", "KeyError: 'model.layers.0'").rstrip("\n")
    assert cause(text) == ("key_error", 5, "TP3")


def test_a_traceback_that_has_just_begun_under_a_harmless_title_is_no_error() -> None:
    text = f"{SIGQUIT[:22]}x\n" * 9 + f"{SIGQUIT[:22]}Ignore import error when loading sglang.srt.models.x: no\n"
    assert cause(f"{text}Traceback (most recent call last):") is None


@pytest.mark.parametrize("head", ["", "llm-1  | "])
@pytest.mark.parametrize(
    "title",
    ["Ignore import error when loading sglang.srt.models.x: no", "Exception in ASGI application", "x init traceback"],
)
def test_a_harmless_title_counts_in_an_envelope_too(title: str, head: str) -> None:
    lines = [f"{SIGQUIT[:22]}x"] * 9 + [f"{SIGQUIT[:22]}{title}"]
    lines += ["Traceback (most recent call last):", '  File "/x/a.py", line 1, in f', "ImportError: no", "", lines[0]]
    assert cause("".join(f"{head}{line}\n" for line in lines)) is None


def test_sigquit_before_the_traceback() -> None:
    assert cause(SIGQUIT + raised("TP3", "KeyError: 'model.layers.0'")) == ("key_error", 6, "TP3")


def test_only_sigquit() -> None:
    assert cause(SIGQUIT) == ("child_failed", 1, "")
    assert fold(SIGQUIT).outcome == "crashed"


def test_the_oom_sentence_is_no_oom() -> None:
    died = "RuntimeError: Rank 1 scheduler died during initialization (exit code: -3). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.\n"
    assert cause(died) == ("rank_died", 1, "")
    assert cause(raised("TP1", "ValueError: bad") + died) == ("value_error", 5, "TP1")
    nine = died.replace("-3)", "-9)")
    assert cause(nine) == ("killed_sigkill", 1, "")
    assert cause(raised("TP1", "ValueError: bad") + nine) == ("value_error", 5, "TP1")
    hint = "[2026-01-29 13:13:48 TP1] Context: self.device='cuda' self.gpu_id=1\n"
    assert cause(hint + raised("TP1", "RuntimeError: bad") + nine)[::2] == ("invalid_device", "TP1")  # type: ignore[index]


def test_a_rank_killed_beats_its_survivors() -> None:
    text = raised("TP0", "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection reset by peer")
    text += "[2026-01-29 13:14:25] Subprocess scheduler_1 (pid=7) crashed with exit code -9. Triggering SIGQUIT for cleanup...\n"
    assert cause(text)[:2] == ("killed_sigkill", 7)  # type: ignore[index]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("AssertionError", "assertion_error"),
        ("AssertionError: no", "assertion_error"),
        ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "cuda_error"),
        ("RuntimeError: CUDA error: invalid device ordinal", "invalid_device"),
        ("RuntimeError: HIP error: invalid argument", "cuda_error"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'ninja'", "build_tool_missing"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/models/x'", "file_not_found_error"),
        ("torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.", "store_wait_timeout"),
        ("OSError: [Errno 28] No space left on device", "disk_full"),
        ("zmq.error.ZMQError: Address already in use (addr='tcp://*:1')", "port_in_use"),
        ("safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge", "weights_corrupt"),
        ("RuntimeError: NCCL error: unhandled system error", "nccl_error"),
        ("RuntimeError: NCCL error: remote process exited or there was a network error", "nccl_remote_process_exited"),
        ("Exception: Capture cuda graph failed: no kernel", "graph_capture_failed"),
        ("ImportError: libnccl.so.2: cannot open shared object file", "import_error"),
        ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "not_enough_memory"),
    ],
)  # fmt: skip
def test_kind_of_an_exception(line: str, kind: str) -> None:
    state = fold(raised("TP1", line) + SIGQUIT)
    assert state.error is not None
    assert (state.error.kind, state.error.rank, state.outcome) == (kind, "TP1", "crashed")
    assert state.error.line == (5 if ":" in line else 1)


def test_the_first_of_a_chain() -> None:
    chain = (
        "[2026-01-29 13:13:49 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "x.py", line 1, in f\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        '  File "x.py", line 1, in f\n'
        "Exception: Capture cuda graph failed: CUDA out of memory.\nPossible solutions:\n1. set --mem-fraction-static\n"
    )
    assert cause(chain) == ("oom_cuda", 3, "TP0")


def test_a_caught_traceback_is_no_crash() -> None:
    caught = (
        'Traceback (most recent call last):\n  File "x.py", line 1, in f\nModuleNotFoundError: No module named y\n'
    )
    state = fold(caught + "[2026-01-29 13:13:07 TP0] Load weight begin. avail mem=1.0 GB\n")
    assert (state.outcome, state.error) == ("unfinished", None)
    assert fold(caught).outcome == "crashed"


def test_a_stop_that_was_asked_for_is_no_crash() -> None:
    text = (
        "[2026-01-29 13:14:30] The server is fired up and ready to roll!\n"
        "[2026-01-29 13:20:00] SIGTERM received. signum=15 frame=x. Draining requests and shutting down...\n"
        '[rank1]:[W129 13:20:01.1 ProcessGroupNCCL.cpp:1826] [PG ID 0 PG GUID 0 Rank 1] Failed to check the "should dump"'
        " flag on TCPStore, (maybe TCPStore server has shut down too early)\n"
    )
    assert fold(text).outcome == "ready"


def test_an_error_while_serving_is_no_crash_of_the_server() -> None:
    text = (
        "[2026-01-29 13:14:30] The server is fired up and ready to roll!\n"
        "[2026-01-29 13:15:00] Exception in ASGI application\nTraceback (most recent call last):\n"
        '  File "x.py", line 1, in f\nValueError: bad request\n'
        "[2026-01-29 13:15:01 TP0] Decode batch\n"
    )
    assert fold(text).outcome == "ready"


def test_unhealthy_after_ready() -> None:
    text = (
        "[2026-01-29 13:14:30] The server is fired up and ready to roll!\n"
        "[2026-01-29 13:20:25] Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.\n"
    )
    assert fold(text).outcome == "unhealthy"


def test_a_bind_error_outranks_the_ready_line() -> None:
    text = (
        "[2026-01-29 13:14:25] ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use\n"
        "[2026-01-29 13:14:27] The server is fired up and ready to roll!\n"
    )
    state = fold(text)
    assert (state.outcome, state.bind_error_line, state.ready_line) == ("crashed", 1, 2)


@pytest.mark.parametrize(
    "text",
    [
        f'Traceback (most recent call last):\n  File "/x/{{}}.py", line 1, in f\n    g()\nValueError: no\n{SIGQUIT}',
        f'Traceback (most recent call last):\n  File "/x/a.py", line 1, in {{}}\n    g()\nValueError: no\n{SIGQUIT}',
        f'Traceback (most recent call last):\n  File "/x/a.py", line 1, in f\n    g("{{}}")\nValueError: {{}}\n{SIGQUIT}',
        "[W socket.cpp:755] [c10d] The IPv6 network addresses of (head, 5000) cannot be retrieved (gai error: -2 - {}).\n",
        "[W socket.cpp:755] [c10d] The IPv6 network addresses of ({}, 5000) cannot be retrieved (gai error: -2 - no).\n",
    ],
)
def test_no_part_of_an_error_holds_a_secret(text: str) -> None:
    secret = "hf_abcdefghijklmnopqrst"
    head = "[2026-02-01 10:00:20] server_args=ServerArgs(model_path='/m', tp_size=2, port=30000)\n"
    state = fold(head + text.replace("{}", secret))
    assert state.error is not None or state.unresolved is not None
    assert secret not in repr(replace(state, last_line=None))
