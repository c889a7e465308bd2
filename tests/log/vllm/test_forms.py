"""The forms of vLLM's lines over its versions, what stands around them, who writes, and when."""

from __future__ import annotations

import json
import re
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmon.analyse.log.fold import LogFold
from sgmon.analyse.log.lines import describe
from sgmon.model import LogReading, LogState
from sgmon.servers.vllm.log import RULES
from tests.log.loading import case_text as sglang_text
from tests.log.vllm.loading import case_text, fold, recording

NOON = datetime(2026, 11, 29, 12).timestamp()


@pytest.mark.parametrize(
    ("line", "rank", "level"),
    [
        ("INFO 11-29 12:00:00 api_server.py:163] x", "", "info"),
        ("INFO 11-29 12:00:00 [api_server.py:163] x", "", "info"),
        ("DEBUG 11-29 12:00:00 [v1/engine/utils.py:123] x", "", ""),
        ("(VllmWorkerProcess pid=12) WARNING 11-29 12:00:00 worker.py:1] x", "", "warning"),
        ("(VllmWorker rank=3 pid=12) ERROR 11-29 12:00:00 [worker.py:1] x", "TP3", "error"),
        ("(Worker_TP1 pid=12) INFO 11-29 12:00:00 [worker.py:1] x", "TP1", "info"),
        ("(Worker_DP1_TP0_EP2 pid=12) INFO 11-29 12:00:00 [worker.py:1] x", "DP1 TP0", "info"),
        ("(Worker_PP1_TP0 pid=12) INFO 11-29 12:00:00 [worker.py:1] x", "PP1 TP0", "info"),
        ("(EngineCore_DP1 pid=12) INFO 11-29 12:00:00 [core.py:1] x", "DP1", "info"),
        ("(EngineCore_1 pid=12) INFO 11-29 12:00:00 [core.py:1] x", "DP1", "info"),
        ("(APIServer pid=12) INFO 11-29 12:00:00 [entry.py:1] x", "", "info"),
        ("\x1b[0;36m(Worker_TP1 pid=1)\x1b[0;0m INFO 11-29 12:00:00 [worker.py:1] x", "TP1", "info"),
        ("(EngineCore_DP0 pid=1) (RayWorkerWrapper pid=8, ip=10.0.0.2) INFO 11-29 12:00:00 [a.py:1] x", "", "info"),
    ],
)
def test_prefixes_of_all_versions(line: str, rank: str, level: str) -> None:
    found = describe(1, line, RULES, NOON)
    assert (found.rank, found.level, found.t) == (rank, level, NOON)


def test_a_printed_line_has_a_writer_and_no_time() -> None:
    found = describe(1, "(Worker_TP1 pid=4) Traceback (most recent call last):", RULES, NOON)
    assert (found.rank, found.t, found.kind) == ("TP1", None, "traceback")


def test_around_new_year() -> None:
    lines = [
        "(APIServer pid=1) INFO 12-31 23:59:50 [a.py:1] Starting vLLM server on http://x",
        "(APIServer pid=1) INFO 01-01 00:00:10 [a.py:1] Available routes are:",
    ]
    for now in (datetime(2027, 1, 1, 0, 1), datetime(2026, 12, 31, 23, 59, 59)):
        state = fold("\n".join(lines) + "\n", epoch=now.timestamp())
        assert [state.first_t, state.last_t] == [
            datetime(2026, 12, 31, 23, 59, 50).timestamp(),
            datetime(2027, 1, 1, 0, 0, 10).timestamp(),
        ]


def test_a_leap_day_has_its_year() -> None:
    now = datetime(2028, 3, 1).timestamp()
    assert describe(1, "INFO 02-29 12:00:00 [a.py:1] x", RULES, now).t == datetime(2028, 2, 29, 12).timestamp()
    assert describe(1, "INFO 02-31 12:00:00 [a.py:1] x", RULES, now).t is None


def test_without_a_year_to_go_by_there_is_no_time() -> None:
    state = fold(case_text("glmv-204-ready"), epoch=None)
    assert (state.first_t, state.longest_gap) == (None, None)
    assert state.last_milestone is not None


def _facts(state: LogState) -> tuple[object, ...]:
    return (
        state.family,
        state.outcome,
        state.phase,
        [(made.name, made.rank, made.line) for made in state.milestones],
        [(rank.rank, rank.milestone) for rank in state.ranks],
        state.error and (state.error.kind, state.error.line),
    )


WRAPPERS = {
    "docker": lambda line: f"2026-04-18T18:08:15.855212259Z {line}",
    "cri": lambda line: f"2026-04-18T18:08:15.855212259Z stderr F {line}",
    "compose": lambda line: f"vllm-1  | {line}",
    "journal": lambda line: f"Apr 18 18:08:15 host-a vllm[811]: {line}",
    "json": lambda line: json.dumps({"log": line + "\n", "stream": "stdout", "time": "2026-04-18T18:08:15.85Z"}),
    "ray": lambda line: f"\x1b[36m(ServeReplica:a pid=77)\x1b[0m {line}",
    "actor": lambda line: f"(MapWorker(MapBatches(A)) pid=77) {line}",
    "launcher": lambda line: f"2026-04-18 18:08:15.855 [Info] (Process) {line}",
    "box": lambda line: f"│ {line.ljust(220)} │",
    "colour": lambda line: re.sub(r"^(\([^)]*\))", lambda match: f"\x1b[0;36m{match[1]}\x1b[0;0m", line),
    "crlf": lambda line: line + "\r",
    "VLLM_LOGGING_PREFIX": lambda line: f"[llm] {line}" if re.match(r"\(|[A-Z]+ \d", line) else line,
}


@pytest.mark.parametrize("case", ["vllm-16841", "glmv-204-ready", "vllm-27508", "strix-12-routes", "vllm-18577"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_what_stands_around_the_lines_changes_nothing(case: str, wrapper: str) -> None:
    text = case_text(case)
    wrapped = "".join(WRAPPERS[wrapper](line) + "\n" for line in text.splitlines())
    assert _facts(fold(wrapped)) == _facts(fold(text))


def test_the_family_is_told_by_the_lines_not_by_a_library_that_another_server_uses() -> None:
    borrowed = "INFO 03-14 06:55:04 __init__.py:190] Automatically detected platform cuda.\n"
    lines = sglang_text("sgl-17402")
    made = LogFold()
    made.feed(LogReading("server.log", text=borrowed), 0.0)
    made.feed(LogReading("server.log", text=lines), 1.0)
    assert made.state().family == "sglang"
    assert fold(case_text("vllm-7514-port")).family == "vllm"


@pytest.mark.parametrize("path", ["openai/api_server.py", "llm.py"])
def test_a_frame_of_an_entry_point_tells_the_family(path: str) -> None:
    frame = f'  File "/x/vllm/entrypoints/{path}", line 5, in <module>\n    import y\n'
    assert fold(f"Traceback (most recent call last):\n{frame}ImportError: no y\n").family == "vllm"


def test_pids_get_their_rank_from_the_line_that_tells_it() -> None:
    text = "".join(
        f"(Worker pid={pid}) INFO 11-29 12:00:00 [p.py:1] {said}\n"
        for pid, said in (
            (31, "Found nccl from library libnccl.so.2"),
            (32, "world_size=4 rank=3 local_rank=3 distributed_init_method=tcp://127.0.0.1:1 backend=nccl"),
            (31, "world_size=4 rank=1 local_rank=1 distributed_init_method=tcp://127.0.0.1:1 backend=nccl"),
            (33, "Found nccl from library libnccl.so.2"),
        )
    )
    assert [rank.rank for rank in fold(text).ranks] == ["TP3", "TP1", "pid33"]
    args = (
        "(APIServer pid=1) INFO 11-29 11:59:00 [u.py:1] non-default args: {'model': 'm', 'tensor_parallel_size': 2, "
    )
    pipeline = fold(args + "'pipeline_parallel_size': 2}\n" + text)
    assert [rank.rank for rank in pipeline.ranks] == ["PP1 TP1", "PP0 TP1", "pid33"]


def test_a_bar_belongs_to_the_name_that_stands_between_its_frames() -> None:
    frame = "Loading safetensors checkpoint shards:  {0}% Completed | {0}/100 [00:01<00:02,  1.02s/it]\n"
    lines = "".join(
        f"(Worker_DP0_TP0_EP0 pid=5) \n{frame.format(n)}(Worker_DP1_TP0_EP2 pid=6) \n{frame.format(n)}"
        for n in range(90)
    )
    state = fold("(APIServer pid=1) INFO 11-29 11:59:00 [u.py:1] Starting to load model m...\n" * 70 + lines)
    assert [(rank.rank, rank.milestone) for rank in state.ranks] == [
        ("DP0 TP0", "weights_progress"),
        ("DP1 TP0", "weights_progress"),
    ]


def test_the_first_bar_at_the_end_is_not_the_end_of_capturing() -> None:
    text = recording("gpu-tp2-default")
    at = text.index("Capturing CUDA graphs (FULL)")
    state = fold(text[:at])
    assert (state.outcome, state.phase) == ("unfinished", "graphs")
    assert state.last_milestone is not None
    assert state.last_milestone.name == "graph_progress"


@pytest.mark.parametrize(
    "line",
    [
        "(EngineCore pid=2) INFO 08-13 11:27:02 [shm_broadcast.py:802] No available shared memory broadcast block found in"
        " 60 seconds. This typically happens when some processes are hanging",
        "(EngineCore_DP0 pid=2) INFO 08-13 11:27:02 [core.py:590] Waiting for READY message from DP Coordinator...",
        "DEBUG 08-13 11:27:02 [utils.py:741] Waiting for 1 local, 0 remote core engine proc(s) to start.",
        "INFO 08-13 11:27:02 [ray_utils.py:214] Waiting for creating a placement group of specs for 10 seconds. specs=[]",
        '(APIServer pid=1) INFO:     127.0.0.1:4 - "GET /health HTTP/1.1" 200 OK',
        'INFO:     127.0.0.1:4 - "GET /metrics HTTP/1.1" 200 OK',
    ],
)
def test_what_comes_by_the_clock_is_no_activity(line: str) -> None:
    made = LogFold(RULES)
    made.feed(LogReading("server.log", text=case_text("vllm-19204")), 10.0)
    made.feed(LogReading("server.log", text=line + "\n"), 70.0)
    made.feed(LogReading("server.log", text=line + "\n"), 130.0)
    state = made.state()
    assert (state.last_activity_t, state.last_byte_t) == (10.0, 130.0)
    assert state.error is None


def test_a_second_start_in_the_file_is_told_of_alone() -> None:
    state = fold(recording("cpu-tp2-kill9-load") + recording("cpu-tp2-tiny"))
    assert (state.outcome, state.runs, state.error) == ("ready", 2, None)


@pytest.mark.parametrize("name", ["gpu-tp2-default", "gpu-dp2-eager", "cpu-tp2-kill9-load"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_chunking_folds_to_the_same(name: str, data: st.DataObject) -> None:
    text = recording(name)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=30)))
    assert fold(text, cuts) == fold(text)


def test_the_last_of_several_api_servers_makes_it_ready() -> None:
    lines = ["(APIServer pid=1) INFO 11-29 12:00:00 [u.py:1] Started 3 API server processes"]
    lines += [f"(ApiServer_{n} pid={n + 5}) INFO:     Application startup complete." for n in range(3)]
    outcomes = [fold("".join(f"{line}\n" for line in lines[:count])).outcome for count in (2, 3, 4)]
    assert outcomes == ["unfinished", "unfinished", "ready"]


def test_what_follows_the_line_of_the_drafter_is_of_the_draft_model() -> None:
    said = ["Starting to load model m...", "Loading weights took 3.00 seconds"]
    said += ["Loading drafter model...", "Loading weights took 1.00 seconds"]
    state = fold("".join(f"(Worker_TP0 pid=7) INFO 11-29 12:00:00 [r.py:1] {words}\n" for words in said))
    names = [made.name for made in state.milestones]
    assert names == ["load_begin", "load_end", "draft_load_begin", "draft_load_end"]


def test_the_rest_of_a_frame_of_a_bar_is_no_activity() -> None:
    """Only a count that moved is, in a line that has no end yet and may be noise."""
    made = LogFold(epoch=NOON)
    made.feed(LogReading("l", text="(Worker pid=7) INFO 11-29 12:00:00 [r.py:1] Starting to load model m...\n"), 1.0)
    bar = "(Worker pid=7) Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:03"
    for t, text in ((2.0, f"\r{bar}"), (3.0, "<00:03,  3.0s/it]")):
        made.feed(LogReading("l", text=text), t)
    assert made.state().last_activity_t == 2.0


@pytest.mark.parametrize("said", ["DeepGemm(fp8_gemm_nt) warmup (W=torch.Size([4096, 7168]))", "DeepGEMM warmup"])
def test_a_bar_of_either_spelling_is_of_deepgemm(said: str) -> None:
    state = fold(
        f"(Worker pid=7) INFO 11-29 12:00:00 [r.py:1] x\n\r{said}:  50%|##   | 11/22 [06:15<06:15, 34.1s/it]"
    )
    assert [bar.name for bar in state.bars] == ["jit_deepgemm"]
