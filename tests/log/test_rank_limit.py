"""A log that names more ranks than there are: bounded in memory, and the overflow is said."""

from __future__ import annotations

import pytest

from sgmon.analyse.log import summary
from sgmon.analyse.log.fold import LogFold
from sgmon.model import LogReading, LogState
from sgmon.model.log import MOST_RANKS

SGLANG = "[2026-01-29 13:12:36] server_args=ServerArgs(model_path='/m', tp_size=4)\n"
VLLM = "(EngineCore pid=7) INFO 01-29 13:12:36 [core.py:58] Initializing a V1 LLM engine (v0.15.0) with config: model='/m'\n"
FORMS = {
    "records": (SGLANG, "[2026-01-29 13:12:36 TP{n}] Load weight begin. avail mem=1.0 GB\n"),
    "tracebacks": (SGLANG, "[2026-01-29 13:12:36 TP{n}] Scheduler hit an exception: Traceback (most recent call last):\n"),
    "hints": (SGLANG, "[2026-01-29 13:12:36 DP{n} TP0] Not enough memory. Please try to increase --mem-fraction-static.\n"),
    "torch": (SGLANG, "[rank{n}]:[E129 13:12:36.1 ProcessGroupNCCL.cpp:1] [PG 0] Watchdog caught collective operation timeout\n"),
    "NCCL": (SGLANG, "host:1:1 [{n}] NCCL INFO Connected all rings\n"),
    "workers": (VLLM, "(Worker_TP{n} pid={n}) INFO 01-29 13:12:36 [gpu_model_runner.py:1] Starting to load model /m...\n"),
    "pids": (VLLM, "(Worker pid={n}) INFO 01-29 13:12:36 [gpu_model_runner.py:1] Starting to load model /m...\n"),
    "numbers": (
        VLLM,
        "(Worker pid={n}) INFO 01-29 13:12:36 [parallel_state.py:1] world_size=1000000 rank={n} local_rank=0 "
        "distributed_init_method=tcp://127.0.0.1:1 backend=nccl\n",
    ),
    "engines": (VLLM, "(EngineCore_DP{n} pid={n}) INFO 01-29 13:12:36 [core.py:1] Loading weights took 1.0 seconds\n"),
}  # fmt: skip


def kept(value: object) -> int:
    """The most entries that any container has that is reached from here."""
    found, todo, most = set(), [value], 0
    while todo:
        one = todo.pop()
        if id(one) in found or isinstance(one, (str, bytes, type)):
            continue
        found.add(id(one))
        if isinstance(one, dict):
            most = max(most, len(one))
            todo += [*one, *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset)):
            most = max(most, len(one))
            todo += one
        else:
            todo += [getattr(one, name, None) for name in getattr(one, "__struct_fields__", ())]
    return most


def read(head: str, line: str, count: int) -> tuple[LogFold, LogState]:
    fold = LogFold(epoch=1_769_688_000.0)
    fold.feed(LogReading("l", text=head), 0.0)
    for begin in range(0, count, 1000):
        fold.feed(
            LogReading("l", text="".join(line.format(n=n) for n in range(begin, min(count, begin + 1000)))), 1.0
        )
    return fold, fold.state()


@pytest.mark.parametrize("form", FORMS)
def test_what_is_kept_does_not_grow_with_the_ranks_that_a_log_names(form: str) -> None:
    head, line = FORMS[form]
    fold, state = read(head, line, 2 * MOST_RANKS + 500)
    assert len(state.ranks) <= MOST_RANKS + 1
    assert kept(fold._log) <= 2 * MOST_RANKS


def test_the_overflow_is_said_and_the_ranks_before_it_stay() -> None:
    head, line = FORMS["records"]
    _, state = read(head, line, MOST_RANKS + 5)
    assert state.ranks_left_out
    assert {rank.rank for rank in state.ranks} == {f"TP{n}" for n in range(MOST_RANKS)}
    assert state.last_milestone is not None
    assert state.last_milestone.line == MOST_RANKS + 6  # the log as a whole goes on
    assert "more than 2,048 ranks are named: the others are left out" in summary.text(state, "l")
    _, all_of_them = read(head, line, MOST_RANKS)
    assert not all_of_them.ranks_left_out
    assert "left out" not in summary.text(all_of_them, "l")
