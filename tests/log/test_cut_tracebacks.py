"""What is left of a failure: tracebacks that are cut or torn, retyped lines, errors without frames. All lines are made up."""

from __future__ import annotations

import pytest

from sgmon.analyse.log.summary import headline
from tests.log.loading import fold, how_it_failed

HIT = "[2026-01-29 13:12:50 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
SIGQUIT = "[2026-01-29 13:12:58] Received sigquit from a child process. It usually means the child failed.\n"
MANAGERS = "/x/sglang/srt/managers"
EXECUTOR = "/x/sglang/srt/model_executor"
RUN = f'  File "{MANAGERS}/scheduler.py", line 1, in run_scheduler_process\n'


def frame(file: str, function: str, code: str = "x()") -> str:
    return f'  File "{file}", line 1, in {function}\n    {code}\n'


#: name: text, phase, kind, line, rank
CAUSES = {
    "the loop is only called": (
        f"{HIT}{RUN}    scheduler.run_event_loop()\n",
        *("serving", "exception", 1, "TP0"),
    ),
    "the next frame is cut": (
        f'{HIT}{RUN}    scheduler.event_loop_normal()\n  File "/usr/lib/x.py", line 116, ',
        *("serving", "exception", 1, "TP0"),
    ),
    "the load is only called": (
        f'{HIT}{frame(EXECUTOR + "/model_runner.py", "initialize", "self.load_model()")}  File "/x/sgl',
        *("weights", "exception", 1, "TP0"),
    ),
    "what the scheduler sets up is no loop": (
        f"{HIT}{RUN}    scheduler = Scheduler(\n"
        f"{frame(MANAGERS + '/scheduler.py', '__init__', 'self.init_grammar_manager()')}ValueError: one token\n",
        *("scheduler_ready", "value_error", 6, "TP0"),
    ),
    "a batch is made up in the loop": (
        f"{frame(MANAGERS + '/scheduler.py', 'get_new_batch_prefill')}AttributeError: no attribute\n\n{SIGQUIT}",
        *("serving", "attribute_error", 3, ""),
    ),
    "NCCL's communicator, which is no class by name": (
        f"{frame('/x/sglang/srt/distributed/device_communicators/pynccl.py', '__init__')}"
        f"RuntimeError: NCCL error: unhandled system error\n\n{SIGQUIT}",
        *("dist_init", "nccl_error", 3, ""),
    ),
    "a draft model's graph": (
        f"{HIT}{frame('/x/sglang/srt/speculative/eagle_draft_cuda_graph_runner.py', 'run_once')}RuntimeError: no\n",
        *("draft_graphs", "runtime_error", 4, "TP0"),
    ),
    "faulthandler in the overlapped loop": (
        "Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n"
        f'  File "{MANAGERS}/tp_worker_overlap_thread.py", line 114 in forward_thread_func\n',
        *("serving", "aborted", 1, ""),
    ),
    "the end of another rank's traceback": (
        f"KeyError: 'layers.0.weight'\n\n{SIGQUIT}{HIT}"
        f"{frame('/x/sglang/srt/speculative/eagle_worker.py', '__init__')}"
        f'{frame(EXECUTOR + "/model_runner.py", "__init__", "self.load_model()")}  File "',
        *("draft_weights", "key_error", 1, ""),
    ),
    "a traceback without its indentation": (
        f'File "{EXECUTOR}/model_runner.py", line 1, in init_torch_distributed\ninitialize_model_parallel(\n'
        f'File "/x/pynccl_wrapper.py", line 350, in NCCL_CHECK\nraise RuntimeError(f"NCCL error: {{text}}")\n'
        f"RuntimeError: NCCL error: unhandled system error\n{SIGQUIT}",
        *("dist_init", "nccl_error", 5, ""),
    ),
    "no more than the line that raised, from the middle of a log": (
        "[2026-01-29 13:12:45] host-a:717:717 [0] NCCL INFO Check P2P Type\n"
        '    raise RuntimeError(f"NCCL error: {text}")\nRuntimeError: NCCL error: unhandled cuda error\n',
        *("", "nccl_error", 3, ""),
    ),
    "a title above the traceback, up to 0.2": (
        f"Exception in ModelTpServer:\nTraceback (most recent call last):\n"
        f"{frame(MANAGERS + '/controller/tp_worker.py', 'exposed_step', 'self.forward_step()')}",
        *("serving", "exception", 2, ""),
    ),
    "a process of 0.2 whose traceback is cut": (
        "Traceback (most recent call last):\n"
        f"{frame(MANAGERS + '/controller/manager_single.py', 'start_controller_process', 'controller.loop_for_forward()')}",
        *("serving", "exception", 1, ""),
    ),
    "a call that is cut itself": (f"{HIT}{RUN}    scheduler.run_event_", "serving", "exception", 1, "TP0"),
    "a call whose value is returned": (
        f'{HIT}{frame("/x/sglang/srt/model_loader/__init__.py", "get_model", "return loader.load_model(")}  File "/x',
        *("weights", "exception", 1, "TP0"),
    ),
    "a title behind a quotation mark": (
        f"`Exception in ModelTpServer:\nTraceback (most recent call last):\n"
        f"{frame(MANAGERS + '/controller/tp_worker.py', 'exposed_step', 'self.forward_step()')}",
        *("serving", "exception", 2, ""),
    ),
    "what the launcher notices of a segmentation fault": (
        'Fatal Python error: Segmentation fault\n  File "/x/multi_platform.py", line 95 in forward_hip\n'
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -11)\n",
        *("", "segfault", 1, ""),
    ),
    "an error code below the failure that names the phase": (
        "Exception: Capture cuda graph failed: aclrtMemcpy, error code is 107030\n"
        "EE9999: Not allow to synchronize captured-stream, stream_id=42.\n",
        *("graphs", "npu_error", 2, ""),
    ),
    "decodes that are logged before it": (
        "[2026-01-29 13:12:49 TP0] Decode batch, #running-req: 1, #token: 16443, gen throughput (token/s): 40.1\n"
        + HIT,
        *("serving", "exception", 2, "TP0"),
    ),
    "torch's watchdog while a graph is captured": (
        "[PG ID 2 PG GUID 3(tp:device) Rank 1] Process group watchdog thread terminated with exception: HIP error:"
        " operation not permitted on an event last recorded in a capturing stream\n"
        "terminate called after throwing an instance of 'c10::DistBackendError'\nFatal Python error: Aborted\n",
        *("graphs", "cuda_error", 1, ""),
    ),
    "gloo, whose peer is gone": (
        f"{HIT}  ...\nRuntimeError: [/pytorch/gloo/transport/tcp/pair.cc:538] Read error [10.0.0.7]:1: timed out\n",
        *("", "peer_lost", 3, "TP0"),
    ),
    "the shell's word for SIGQUIT": (
        "[2026-01-29 13:12:45 TP0] Load weight begin. avail mem=21.63 GB\nQuit (core dumped)\n",
        *("weights", "child_failed", 2, ""),
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_what_is_left_tells_the_phase_and_the_cause(name: str) -> None:
    text, phase, kind, line, rank = CAUSES[name]
    assert how_it_failed(fold(text)) == ("crashed", phase, kind, line, rank)


def test_retyped_lines_without_a_time_keep_their_ranks() -> None:
    state = fold(
        "[TP0 EP0] Load weight begin. avail mem=108.11 GB\n[TP1 EP1] Load weight begin. avail mem=108.11 GB\n"
        "[TP1 EP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        f"{RUN}ValueError: no\n"
    )
    assert state.family == "sglang"
    assert how_it_failed(state) == ("crashed", "weights", "value_error", 5, "TP1")
    assert [rank.rank for rank in state.ranks] == ["TP0", "TP1"]


def test_a_word_of_a_fork_before_the_ranks_hides_no_rank() -> None:
    state = fold("[2026-01-29 13:12:50 DisaggregationMode.MIXED TP3] Load weight begin. avail mem=1.0 GB\n")
    assert [(rank.rank, rank.milestone) for rank in state.ranks] == [("TP3", "load_begin")]


@pytest.mark.parametrize(
    "said",
    [
        "#new-seq: 1, #new-token: 4352, #cached-token: 0, token usage: 0.02, #running-req: 0, #queue-req: 2",
        "#new-seq: 4, #new-token: 2048, #cached-token: 353, full token usage: 0.43, #running-req: 1, #queue-req: 0",
    ],
)
def test_a_batch_of_many_is_none_of_the_warm_up(said: str) -> None:
    state = fold(f"[2026-01-29 13:12:50 TP0] Prefill batch, {said}\n{HIT}{RUN}    scheduler.run_event_loop()\n")
    assert state.phase == "serving"


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("sglang: 0.4.10.post2", "0.4.10.post2"),
        ("docker run lmsysorg/sglang:v0.5.10.post1 python3 -m sglang.launch_server", "0.5.10.post1"),
        ("Successfully installed sglang-0.4.6.post5 torch-2.6.0", "0.4.6.post5"),
    ],
)
def test_the_version_stands_where_people_say_it(line: str, version: str) -> None:
    assert fold(f"{line}\n[2026-01-29 13:12:50 TP0] Init torch distributed begin.\n").version == version


def test_the_end_of_a_torn_traceback_below_another_is_no_cause_of_its_own() -> None:
    """A harmless traceback, torn by what another process prints."""
    text = (
        "[2026-01-29 13:12:40 TP0] Ignore import error when loading sglang.srt.models.x: no\n"
        "Traceback (most recent call last):\n[2026-01-29 13:12:40 TP1] Init torch distributed begin.\n"
        '    raise ImportError("no")\nImportError: no\n'
    )
    assert fold(text).outcome == "unfinished"


def test_an_exception_alone_stands_for_the_last_milestone() -> None:
    text = f"{frame('/x/sglang/srt/layers/moe.py', 'create_weights')}KeyError: 'w'\n\n"
    assert "last milestone exception (line 3)" in headline(fold(text))


TORN = f"""    batch = self.get_next()
{frame("/x/sglang/srt/mem_cache/tree.py", "init_load_back", "assert node.value is not None")}AssertionError

{HIT}{RUN}    scheduler.run_event_loop()
"""


@pytest.mark.parametrize("text", [TORN, f"{RUN}    scheduler = Scheduler(\n"])
def test_blanks_with_which_a_terminal_fills_its_lines_change_nothing(text: str) -> None:
    padded = "".join(f"{line:<160}\n" for line in text.splitlines())
    assert how_it_failed(fold(padded)) == how_it_failed(fold(text))


@pytest.mark.parametrize("said", ["Mooncake store setup", "Mooncake store warmup", "Connect to Mooncake store"])
def test_mooncake_below_a_hierarchical_cache_is_no_disaggregation(said: str) -> None:
    engine = "I0616 07:25:02.235728 40858 transfer_engine.cpp:44] Transfer Engine starting. Server: localhost:12865\n"
    assert fold(f"{engine}[2026-01-29 13:12:50 TP1] {said} successfully.\n").phase == "kv_cache"
