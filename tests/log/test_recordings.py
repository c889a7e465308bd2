"""Real starts of SGLang 0.5.17 (GPU) and 0.5.23 (CPU): how each ended, and where."""

from __future__ import annotations

import pytest

from tests.log.loading import RECORDINGS, fold, recording

#: name: outcome, last milestone, its line, error kind, error line, ready line
ENDS = {
    "cpu/bad-shard": ("crashed", "load_begin", 56, "weights_missing", 105, None),
    "cpu/dp2-tiny": ("ready", "ready", 91, None, None, 91),
    "cpu/dummy": ("ready", "ready", 87, None, None, 87),
    "cpu/extra-fail-tp2-numa": ("crashed", "dist_init_begin", 30, "assertion_error", 46, None),
    "cpu/nnodes2-hang": ("unfinished", "dist_init_begin", 25, None, None, None),
    "cpu/nnodes2-node0": ("ready", "ready", 59, None, None, 59),
    "cpu/nnodes2-node1": ("ready", "ready", 39, None, None, None),  # no "fired up" there: the dummy server is up
    "cpu/port-in-use": ("crashed", "http_start", 46, "port_in_use", 47, None),
    "cpu/port-in-use-long": ("crashed", "warmup_failed", 49, "port_in_use", 47, None),
    "cpu/serve-cli": ("ready", "ready", 51, None, None, 51),
    "cpu/tp1-mid-pyspy": ("ready", "ready", 55, None, None, 55),
    "cpu/tp1-tiny": ("ready", "ready", 54, None, None, 54),
    "cpu/tp2-big-cold": ("ready", "ready", 89, None, None, 89),
    "cpu/tp2-debug": ("ready", "ready", 235, None, None, 235),
    "cpu/tp2-kill9-import": ("crashed", "tokenizer_init", 14, "killed_sigkill", 49, None),
    "cpu/tp2-kill9-load": ("crashed", "weights_progress", 57, "killed_sigkill", 75, None),
    "cpu/tp2-mid-cold": ("ready", "ready", 90, None, None, 90),
    "cpu/tp2-sigstop-import": ("ready", "ready", 85, None, None, 85),
    "cpu/tp2-sigstop-load": ("ready", "ready", 89, None, None, 89),
    "cpu/tp2-tiny": ("ready", "ready", 86, None, None, 86),
    "cpu/tp2-tiny-coldjit": ("ready", "ready", 148, None, None, 148),
    "cpu/wrong-path": ("crashed", "launch", 1, "model_not_found", 16, None),
    "gpu/dummy32_nograph": ("ready", "ready", 56, None, None, 56),
    "gpu/hang_nnodes": ("unfinished", "dist_init_begin", 8, None, None, None),
    "gpu/kill_sched": ("crashed", "weights_progress", 14, "killed_sigkill", 48, None),
    "gpu/missing_model": ("crashed", "launch", 1, "model_not_found", 11, None),
    "gpu/oom_big": ("crashed", "load_begin", 13, "oom_cuda", 80, None),
    "gpu/oom_frac": ("crashed", "load_end", 15, "oom_cuda", 51, None),
    "gpu/port_used": ("crashed", "http_start", 30, "port_in_use", 31, None),
    "gpu/ready_native": ("crashed", "ready", 25, "jit_build_failed", 163, 25),
    "gpu/real_cold": ("ready", "ready", 45, None, None, 45),
    "gpu/real_warm_mt_debug": ("ready", "ready", 2176, None, None, 2176),
    "gpu/tiny": ("ready", "ready", 138, None, None, 138),
    "gpu/tp2": ("ready", "ready", 154, None, None, 154),
    "gpu/tp2_stop1": ("ready", "ready", 61, None, None, 61),
    "gpu/tp2_stop_capture": ("ready", "ready", 159, None, None, 159),
}
GOOD = [name for name, end in ENDS.items() if end[0] == "ready"]


def test_every_recording_has_an_expectation() -> None:
    names = {f"{path.parent.name}/{path.name.removesuffix('.log.gz')}" for path in RECORDINGS}
    assert names == set(ENDS)


@pytest.mark.parametrize("name", ENDS)
def test_end(name: str) -> None:
    state = fold(recording(name))
    last, error = state.last_milestone, state.error
    found = (
        state.outcome,
        last.name if last else None,
        last.line if last else None,
        error.kind if error else None,
        error.line if error else None,
        state.ready_line,
    )
    assert found == ENDS[name]


@pytest.mark.parametrize("name", GOOD)
def test_a_good_start_has_no_error(name: str) -> None:
    state = fold(recording(name))
    assert state.error is None
    assert state.errors == 0
    assert state.noise > 0


@pytest.mark.parametrize("name", ENDS)
def test_lines_are_counted_as_an_editor_does(name: str) -> None:
    text = recording(name)
    assert fold(text).lines == text.count("\n") + (not text.endswith("\n"))


@pytest.mark.parametrize("name", ["cpu/tp2-big-cold", "gpu/tp2"])
def test_arguments_of_both_forms(name: str) -> None:
    args = fold(recording(name)).args
    assert args is not None
    assert (args.tp, args.dp, args.nnodes) == (2, 1, 1)
    assert args.model_path
    assert len(args.raw) > 300


def test_the_rank_that_was_killed_is_named() -> None:
    error = fold(recording("cpu/tp2-kill9-load")).error
    assert error is not None
    assert error.rank == "TP1"


def test_ranks_of_two() -> None:
    ranks = {rank.rank: rank.milestone for rank in fold(recording("gpu/tp2")).ranks}
    assert ranks == {"TP0": "warmup_request", "TP1": "graph_end"}


def test_the_longest_silence() -> None:
    gap = fold(recording("gpu/tp2")).longest_gap
    assert gap is not None
    assert (gap.s, gap.after_line) == (97.0, 28)
