"""Texts that a terminal has cut at its width: read as the whole lines are, with the numbers of the lines as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from sgmon.analyse.log.hard_wrapped import unwrapped, width_of
from sgmon.commands.log import read
from sgmon.model import LogState
from tests.log.loading import case_names, case_text

CORE = "(EngineCore_DP0 pid=17374) ERROR 11-29 12:00:01 [core.py:718] "
VLLM = (
    "(APIServer pid=1) INFO 11-29 12:00:00 [api_server.py:1842] vLLM API server version 0.11.0\n"
    "(APIServer pid=1) INFO 11-29 12:00:00 [utils.py:233] non-default args: {'model': '/m', 'tensor_parallel_size': 2}\n"
    f"{CORE}EngineCore failed to start.\n{CORE}Traceback (most recent call last):\n"
    f'{CORE}  File "/x/lib/python3.10/site-packages/vllm/v1/worker/gpu_worker.py", line 180, in init_device\n'
    f"{CORE}    raise ValueError(\n"
    f"{CORE}ValueError: Free memory on device (3.22/4.0 GiB) on startup is less than desired GPU memory utilization (0.9).\n"
)
SGLANG = (
    "[2026-01-29 13:12:36] server_args=ServerArgs(model_path='/models/a-model-with-a-long-name-72b-instruct', tp_size=2)\n"
    "[2026-01-29 13:12:37 TP0] Load weight begin. avail mem=79.06 GB\n"
    "[2026-01-29 13:12:38 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", line 3796, in run_scheduler_process\n'
    '  File "/sgl-workspace/sglang/python/sglang/srt/model_executor/model_runner.py", line 812, in load_model\n'
    "KeyError: 'model.layers.0.self_attn.a_parameter_that_no_module_has.weight_scale_inv'\n"
)


def cut(text: str, width: int) -> str:
    """As a terminal of this width shows it."""
    lines = text.splitlines()
    return "".join(f"{line[at : at + width]}\n" for line in lines for at in range(0, max(1, len(line)), width))


def told(state: LogState) -> tuple[object, ...]:
    assert state.error is not None and state.args is not None
    ranks = tuple(rank.rank for rank in state.ranks)
    return (
        state.family,
        state.version,
        state.outcome,
        state.phase,
        state.args.tp,
        state.error.kind,
        state.error.rank,
        ranks,
    )


@pytest.mark.parametrize("width", [72, 80])
@pytest.mark.parametrize("text", [VLLM, SGLANG], ids=["vllm", "sglang"])
def test_the_same_is_read_as_of_whole_lines(text: str, width: int, tmp_path: Path) -> None:
    whole, short = tmp_path / "whole.log", tmp_path / "cut.log"
    whole.write_text(text)
    short.write_text(cut(text, width))
    assert told(read(str(short))) == told(read(str(whole)))


def test_lines_have_the_numbers_that_an_editor_shows(tmp_path: Path) -> None:
    short = tmp_path / "cut.log"
    short.write_text(cut(VLLM, 80))
    state = read(str(short))
    assert state.error is not None
    assert short.read_text().split("\n")[state.error.line - 1].startswith(f"{CORE}ValueError")
    assert state.lines == cut(VLLM, 80).count("\n")


def test_an_unwrapped_text_is_the_text() -> None:
    assert unwrapped(cut(VLLM, 80), 80)[0] == VLLM


@pytest.mark.parametrize("name", case_names())
def test_no_case_is_taken_for_one(name: str) -> None:
    assert width_of(case_text(name)) == 0


def test_bars_and_repetitions_of_one_length_are_whole() -> None:
    bars = [
        f"Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  {n}%|###   | {n}/99 [00:01<00:02]\n"
        for n in range(10, 30)
    ]
    assert width_of("".join(bars)) == 0
    assert width_of((CORE + "a line that comes again and again\n") * 9) == 0
