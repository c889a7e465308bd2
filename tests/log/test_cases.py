"""The logs of public reports against the readings that people made of them (tests/cases/*.json)."""

from __future__ import annotations

import pytest

from tests.log.loading import case_names, case_text, expected, fold

#: Where sgmon reads otherwise than the case, and why.
KNOWN = {
    (
        "repo-gb10-tp3-silent8min",
        "last",
    ): "the case takes the line after the full bar; its twin (cut-in-gap) takes the bar",
    (
        "sgl-7478-hang",
        "ranks",
    ): "NCCL's 'Init COMPLETE' is nccl_init_complete for the rank too; the case calls it nccl_comm",
}
NAMES = case_names()


def skip_known(name: str, what: str, request: pytest.FixtureRequest) -> None:
    if (name, what) in KNOWN:
        request.node.add_marker(pytest.mark.xfail(reason=KNOWN[name, what], strict=True))


def bare(name: str) -> str:
    return name.partition("(")[0]


def test_all_cases_are_here() -> None:
    assert len(NAMES) >= 34


@pytest.mark.parametrize("name", NAMES)
def test_state(name: str) -> None:
    wanted = expected(name)["expected"]["final_state"]
    unfinished = {"stalled": "unfinished", "progressing": "unfinished"}
    assert fold(case_text(name)).outcome == unfinished.get(wanted, wanted)


@pytest.mark.parametrize("name", NAMES)
def test_last_milestone(name: str, request: pytest.FixtureRequest) -> None:
    skip_known(name, "last", request)
    wanted = expected(name)["expected"]["last_milestone"]
    last = fold(case_text(name)).last_milestone
    assert last is not None
    assert (last.name, last.line) == (bare(wanted["name"]), wanted["line"])


@pytest.mark.parametrize("name", NAMES)
def test_last_milestone_of_each_rank(name: str, request: pytest.FixtureRequest) -> None:
    skip_known(name, "ranks", request)
    wanted = expected(name)["expected"]["per_rank_last_milestone"] or {}
    found = {rank.rank: (rank.milestone, rank.line) for rank in fold(case_text(name)).ranks}
    assert {rank: found.get(rank) for rank in wanted} == {
        rank: (bare(entry["name"]), entry["line"]) for rank, entry in wanted.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_error(name: str) -> None:
    wanted = expected(name)["expected"]
    error = fold(case_text(name)).error
    found = (error.kind, error.line) if error else (None, None)
    assert found == (wanted["error_kind"], wanted["error_line"])


@pytest.mark.parametrize("name", NAMES)
def test_line_count(name: str) -> None:
    assert fold(case_text(name)).lines == expected(name)["log_lines"]
