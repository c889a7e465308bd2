"""Public reports of vLLM against the readings that people made of them (tests/cases/vllm/*.json)."""

from __future__ import annotations

import pytest

from tests.log.vllm.loading import as_shown, case_names, case_text, expected, fold

#: Where sgmon reads otherwise than the case, and why.
KNOWN = {
    ("vllm-18577", "ranks"): "the case gives the bar to the rank that failed; only rank 0 draws it",
    ("vllm-32116", "phase"): "no line of the text is of the phase; the report tells it",
}
UNFINISHED = {"stalled": "unfinished", "progressing": "unfinished"}
#: phases that the cases do not tell apart
BROADER = {"compile": "profile", "engine_end": "warmup"}
NAMES = case_names()


def skip_known(name: str, what: str, request: pytest.FixtureRequest) -> None:
    if (name, what) in KNOWN:
        request.node.add_marker(pytest.mark.xfail(reason=KNOWN[name, what], strict=True))


def test_all_cases_are_here() -> None:
    assert len(NAMES) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_family_and_state(name: str) -> None:
    state, wanted = fold(case_text(name)), expected(name)["final_state"]
    assert (state.family, state.outcome) == ("vllm", UNFINISHED.get(wanted, wanted))


@pytest.mark.parametrize("name", NAMES)
def test_phase(name: str, request: pytest.FixtureRequest) -> None:
    skip_known(name, "phase", request)
    state, wanted = fold(case_text(name)), expected(name)["stuck_phase"]
    if state.outcome == "ready":
        return
    assert BROADER.get(state.phase, state.phase) == ("" if wanted.startswith("unknown") else wanted)


@pytest.mark.parametrize("name", NAMES)
def test_last_milestone(name: str) -> None:
    wanted, last = expected(name)["last_milestone"], fold(case_text(name)).last_milestone
    assert (last and (last.name, last.line)) == (wanted and (wanted["name"], wanted["line"]))


@pytest.mark.parametrize("name", NAMES)
def test_last_milestone_of_each_rank(name: str, request: pytest.FixtureRequest) -> None:
    skip_known(name, "ranks", request)
    wanted = expected(name)["per_rank_last_milestone"]
    found = {rank.rank: (rank.milestone, rank.line) for rank in fold(case_text(name)).ranks}
    assert {as_shown(rank): (entry["name"], entry["line"]) for rank, entry in wanted.items()}.items() <= found.items()


@pytest.mark.parametrize("name", NAMES)
def test_error(name: str) -> None:
    wanted, error = expected(name), fold(case_text(name)).error
    assert ((error.kind, error.line) if error else (None, None)) == (wanted["error_kind"], wanted["error_line"])
