"""Whole logs of real starts of vLLM 0.32.0 (CPU) and 0.22.0 (H200): how each ended, and where."""

from __future__ import annotations

import pytest

from sgmon.analyse.log.catalogue import of
from sgmon.servers.vllm import FAMILY
from sgmon.servers.vllm.log import RULES
from tests.log.vllm.loading import fold, recording, recordings

#: name: outcome, phase, last milestone, its line, error kind, error line, ready line
ENDS = {
    "cpu-dp2-tiny": ("ready", "serving", "ready", 204, None, None, 204),
    "cpu-nnodes2-hang": ("unfinished", "dist_init", "dist_init_begin", 35, None, None, None),
    "cpu-port-in-use": ("crashed", "launch", "args", 8, "port_in_use", 38, None),
    "cpu-tp1-compile": ("unfinished", "spawn", "engine_begin", 16, None, None, None),
    "cpu-tp1-tiny": ("ready", "serving", "ready", 97, None, None, 97),
    "cpu-tp2-kill9-load": ("crashed", "weights", "load_end", 63, "worker_lost", 54, None),
    "cpu-tp2-kill9-ready": ("crashed", "serving", "ready", 117, "rank_died", 178, 117),
    "cpu-tp2-sigstop-load": ("ready", "serving", "ready", 117, None, None, 117),
    "cpu-tp2-tiny": ("ready", "serving", "ready", 111, None, None, 111),
    "cpu-wrong-path": ("crashed", "launch", "args", 8, "hub_unreachable", 62, None),
    "gpu-dp2-eager": ("ready", "serving", "ready", 175, None, None, 175),
    "gpu-tp1-default": ("ready", "serving", "ready", 89, None, None, 89),
    "gpu-tp2-default": ("ready", "serving", "ready", 100, None, None, 100),
    "gpu-tp2-eager": ("ready", "serving", "ready", 95, None, None, 95),
    "gpu-tp2-stop-load": ("ready", "serving", "ready", 95, None, None, 95),
}
GOOD = [name for name, end in ENDS.items() if end[0] == "ready"]


def test_every_recording_has_an_expectation() -> None:
    assert set(recordings()) == set(ENDS)


@pytest.mark.parametrize("name", ENDS)
def test_end(name: str) -> None:
    state = fold(recording(name))
    last, error = state.last_milestone, state.error
    assert last is not None
    kind, line = (error.kind, error.line) if error else (None, None)
    assert (state.outcome, state.phase, last.name, last.line, kind, line, state.ready_line) == ENDS[name]
    assert state.version == ("0.22.0" if name.startswith("gpu") else state.version and "0.32.0")


@pytest.mark.parametrize("name", GOOD)
def test_a_good_start_has_no_error_before_its_stop(name: str) -> None:
    text = recording(name)
    state = fold(text)
    assert state.sigterm_line is not None
    served = "\n".join(text.split("\n")[: state.sigterm_line - 1]) + "\n"
    before = fold(served)
    assert (before.outcome, before.error, before.errors, before.behind) == ("ready", None, 0, ())


@pytest.mark.parametrize("name", GOOD)
def test_no_rank_is_behind_at_any_line_of_a_good_start(name: str) -> None:
    text = recording(name)
    lines = text.split("\n")
    ready = fold(text).ready_line or 0
    for end in range(20, ready, 7):
        state = fold("\n".join(lines[:end]) + "\n")
        assert state.outcome == "unfinished"
        # the ranks of a start go on side by side: one line may be late, a phase is not
        order = FAMILY.phases.order
        assert not state.behind or order(state.reached) - order(state.phase) <= 1, (end, state.behind, state.phase)


def test_ranks_of_two() -> None:
    assert [rank.rank for rank in fold(recording("gpu-tp2-default")).ranks] == ["TP0", "TP1"]


def test_the_engine_is_the_rank_of_one_gpu() -> None:
    state = fold(recording("gpu-tp1-default"))
    assert [rank.rank for rank in state.ranks] == [""]
    assert [bar.name for bar in state.bars] == ["weights_progress", "graph_progress"]


def test_workers_of_two_replicas_are_told_apart_by_pid() -> None:
    assert [rank.rank for rank in fold(recording("gpu-dp2-eager")).ranks] == ["pid4481", "pid4484"]


def test_the_rank_that_was_killed_is_named() -> None:
    error = fold(recording("cpu-tp2-kill9-ready")).error
    assert error is not None
    assert error.rank == "TP1"


def test_one_of_two_api_servers_is_not_the_server() -> None:
    lines = recording("cpu-dp2-tiny").split("\n")
    half = fold("\n".join(lines[:203]) + "\n")
    assert (half.outcome, half.phase) == ("unfinished", "http")
    assert fold("\n".join(lines[:204]) + "\n").outcome == "ready"


def test_dates_without_a_year_give_times_and_silences() -> None:
    state = fold(recording("cpu-tp2-sigstop-load"))
    assert state.longest_gap is not None
    assert (state.longest_gap.s, state.longest_gap.after_line) == (102.0, 63)


def test_every_milestone_that_a_rank_need_not_print_is_known() -> None:
    catalogue = of(RULES)
    assert catalogue.silent_by_design("0.22.0", "compile_end", "TP1")
    assert catalogue.silent_by_design("0.22.0", "kv_alloc", "TP1")
    assert not catalogue.silent_by_design("0.22.0", "dist_init_begin", "TP1")
    assert not catalogue.silent_by_design("0.9.2", "compile_end", "TP1")
    assert catalogue.silent_by_design("", "graph_end", "TP1")
